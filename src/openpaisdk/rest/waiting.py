"""Waiting for a job: told by the server where it can, asked for with growing pauses where it cannot."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError, OpenPAIError, UnavailableError, UsageError
from openpaisdk.rest.calls import lacks_api
from openpaisdk.rest.jobs import TERMINAL, Jobs
from openpaisdk.transport.retry import may_pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 10.0
LONG_POLL = 60.0
OUTAGE = 300.0


class WaitTimeout(UnavailableError, TimeoutError):
    """The job did not get there in time."""

    code = "WaitTimeout"


class Waiting(Jobs):
    """Waiting for jobs."""

    def wait(
        self, name: str, user: str | None = None, *, until: str = "terminal", timeout: float | None = None
    ) -> dict[str, Any]:
        """The detail of a job once it is over (or, `until="running"`, no longer waiting for its start).

        A job that goes back to waiting for a retry is still waited for. A server that cannot be reached for a
        while is waited for too, at most five minutes. WaitTimeout after `timeout` seconds.
        """
        if until not in ("terminal", "running"):
            raise UsageError(f"cannot wait until {until!r}", hint="wait until terminal or running")
        began = last_answer = self._clock()
        pause = FIRST_PAUSE
        detail: dict[str, Any] = {}
        while True:
            asked = self._clock()
            left = None if timeout is None else began + timeout - asked
            told = bool(detail) and "wait" in self.extensions
            try:
                found = self._long_poll(name, user, until, left) if told else self.job(name, user)
            except OpenPAIError as error:
                passing = may_pass(error) or getattr(error, "reason", "") == "refused"
                if not (passing and detail and asked - last_answer < OUTAGE):
                    raise
                told = False
            else:
                detail, last_answer = found, self._clock()
                state = detail.get("jobStatus", {}).get("state")
                if state in TERMINAL or (until == "running" and state not in ("WAITING", None)):
                    return detail
                # A long poll that comes back at once with nothing new would turn into a storm of requests.
                told = "wait" in self.extensions and not (told and last_answer - asked < 0.05)
            left = None if timeout is None else began + timeout - self._clock()
            if left is not None and left <= 0:
                shown = detail.get("jobStatus", {}).get("state", "UNKNOWN")
                raise WaitTimeout(
                    f"{name} is still {shown} after {timeout:g} s",
                    hint=f"it goes on by itself; wait again with `opai job wait {name}`",
                )
            if not told:
                self._sleep(pause if left is None else min(pause, left))
                pause = min(pause * 1.5, LONGEST_PAUSE)

    def _long_poll(self, name: str, user: str | None, until: str, left: float | None) -> dict[str, Any]:
        seconds = LONG_POLL if left is None else max(0.0, min(LONG_POLL, left))
        query: dict[str, Any] = {"timeout": f"{seconds:.3f}"}
        query["until" if until == "terminal" else "state"] = "terminal" if until == "terminal" else "WAITING"
        path = self.job_path(name, user) + "/wait"
        try:
            return self._object("GET", path, query=query, timeout=seconds + self.timeout, safe=False)
        except NotFoundError as error:
            if lacks_api(error):
                self.extensions -= {"wait"}
                return self.job(name, user)
            raise
