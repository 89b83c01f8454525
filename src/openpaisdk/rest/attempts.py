"""The history of a job: its attempts, and those of each task."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError, OpenPAIError
from openpaisdk.rest.calls import Calls, lacks_api
from openpaisdk.transport import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Attempts(Calls):
    """Attempts of jobs and tasks."""

    def job_attempts_healthy(self, name: str) -> bool:
        """Whether the server keeps attempts that are over."""
        try:
            return self.request("GET", self.job_path(name) + "/job-attempts/healthz").status == 200
        except OpenPAIError as error:
            if error.http_status == 501 or lacks_api(error):
                return False
            raise

    def job_attempts(self, name: str) -> list[dict[str, Any]]:
        """Every attempt of a job, the latest first, then from the first on."""
        try:
            return self._array("GET", self.job_path(name) + "/job-attempts")
        except NotFoundError as error:
            if lacks_api(error):
                raise
            raise NotFoundError(f"there is no job {name!r}", code="NoJobError") from error

    def job_attempt(self, name: str, attempt: int) -> dict[str, Any]:
        """One attempt of a job."""
        return self._object("GET", f"{self.job_path(name)}/job-attempts/{int(attempt)}")

    def task_history(self, name: str, role: str, index: int, job_attempt: int = 0) -> dict[str, Any]:
        """A task with all its attempts, newest first. Servers before 1.3 do not keep them."""
        path = f"/attempts/{int(job_attempt)}/taskRoles/{quote(role)}/taskIndex/{int(index)}/attempts"
        return self._object("GET", self.job_path(name) + path)
