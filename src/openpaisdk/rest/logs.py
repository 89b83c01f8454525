"""Logs of tasks: where they are, and reading them, whole or the end."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError, OpenPAIError, UsageError
from openpaisdk.rest.calls import lacks_api
from openpaisdk.rest.jobs import Jobs
from openpaisdk.transport import quote, show_origin, split_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.transport import Response

_BYTES_PER_LINE = 200


class TaskRef:
    """One attempt of one task, as a job's detail shows it."""

    __slots__ = ("attempt", "index", "job_attempt", "log", "role", "state")

    def __init__(
        self, role: str, index: int, job_attempt: int, attempt: int, state: str, log: str | None
    ) -> None:
        self.role = role
        self.index = index
        self.job_attempt = job_attempt
        self.attempt = attempt
        self.state = state
        self.log = log

    @property
    def task(self) -> str:
        """`role/index`."""
        return f"{self.role}/{self.index}"

    @property
    def at(self) -> str:
        """`job attempt/role/index/task attempt`."""
        return f"{self.job_attempt}/{self.role}/{self.index}/{self.attempt}"


def task_refs(detail: dict[str, Any]) -> list[TaskRef]:
    """The tasks that a job's detail shows, in the order of roles and indexes."""
    job_attempt = detail.get("jobStatus", {}).get("attemptId") or 0
    found = []
    for role, part in (detail.get("taskRoles") or {}).items():
        for status in part.get("taskStatuses") or []:
            found.append(
                TaskRef(
                    role,
                    int(status.get("taskIndex") or 0),
                    int(job_attempt),
                    int(status.get("attemptId") or 0),
                    str(status.get("taskState") or "UNKNOWN"),
                    status.get("containerLog") or None,
                )
            )
    return found


class Logs(Jobs):
    """Logs of tasks."""

    def log_locations(
        self,
        name: str,
        role: str,
        index: int = 0,
        *,
        job_attempt: int = 0,
        attempt: int = 0,
        tail: bool = False,
    ) -> list[dict[str, str]]:
        """The logs of one task attempt, each with `name` and a whole `uri` that is good for two minutes.

        With `tail` the addresses give the end of each log only. Servers before 1.4 have a web page per task.
        """
        path = (
            f"{self.job_path(name)}/attempts/{int(job_attempt)}/taskRoles/{quote(role)}"
            f"/taskIndex/{int(index)}/attempts/{int(attempt)}/logs"
        )
        try:
            found = self._json("GET", path, query={"tail-mode": True if tail else None})
        except NotFoundError as error:
            if not lacks_api(error):
                raise
            return [{"name": "all", "uri": self._log_page(name, role, index)}]
        return [
            {"name": str(item["name"]), "uri": self._whole(str(item["uri"]))}
            for item in found.get("locations", [])
        ]

    def _whole(self, uri: str) -> str:
        if "://" in uri:
            return uri
        return show_origin(split_url(self.portal_uri)[0]) + ("" if uri.startswith("/") else "/") + uri

    def _log_page(self, name: str, role: str, index: int) -> str:
        for ref in task_refs(self.job(name)):
            if (ref.role, ref.index) == (role, index) and ref.log and "://" in ref.log:
                return ref.log
        raise NotFoundError(f"task {role}/{index} of {name!r} has no log yet", code="NoTaskLogError")

    def read_log(
        self,
        name: str,
        role: str | None = None,
        index: int = 0,
        *,
        stream: str = "stdout",
        job_attempt: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> str:
        """The log of one task as text: `stdout`, `stderr`, `all` ...; only the last `tail` lines if told.

        The role may be left out where the job has only one task.
        """
        found = self.read_log_bytes(
            name, role, index, stream=stream, job_attempt=job_attempt, attempt=attempt, tail=tail
        )
        return found.decode("utf-8", "replace")

    def read_log_bytes(
        self,
        name: str,
        role: str | None = None,
        index: int = 0,
        *,
        stream: str = "stdout",
        job_attempt: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> bytes:
        """The same as the task wrote it, whether it is text or not."""
        ref = self._task(name, role, index, job_attempt)
        number = ref.attempt if attempt is None else attempt
        for last_try in (False, True):
            places = self.log_locations(
                name, ref.role, ref.index, job_attempt=ref.job_attempt, attempt=number
            )
            uri = pick(places, stream)
            if uri is None:
                names = ", ".join(item["name"] for item in places) or "none"
                raise NotFoundError(
                    f"task {ref.task} of {name!r} has no log {stream!r}",
                    hint=f"there are: {names}",
                    code="NoTaskLogError",
                )
            try:
                return self._read(uri) if tail is None else self._read_end(uri, tail)
            except OpenPAIError as error:
                # The address was good for two minutes and a slow queue can use them up.
                if error.http_status != 403 or last_try:
                    raise
        raise AssertionError("unreachable")

    def _task(self, name: str, role: str | None, index: int, job_attempt: int | None) -> TaskRef:
        known = refs = task_refs(self.job(name, None, job_attempt))
        if role is not None:
            wanted = "".join(letter for letter in role.lower() if letter.isalnum())
            refs = [ref for ref in known if ref.role in (role, wanted) and ref.index == index]
        if len(refs) == 1:
            return refs[0]
        hint = "name one: " + ", ".join(ref.task for ref in known[:10])
        if refs:
            raise UsageError(f"{name!r} has {len(refs)} tasks", hint=hint)
        shown = f"task {role}/{index}" if role is not None else "tasks"
        if known:
            raise NotFoundError(f"{name!r} has no {shown}", hint=hint, code="NoTaskLogError")
        raise NotFoundError(f"{name!r} has no {shown} yet", code="NoTaskLogError")

    def _read(self, uri: str) -> bytes:
        return log_bytes(self._fetch(uri, None))

    def _read_end(self, uri: str, lines: int) -> bytes:
        if lines <= 0:
            return b""
        size = max(lines * _BYTES_PER_LINE, 16384)
        while True:
            try:
                response = self._fetch(uri, f"bytes=-{size}")
            except OpenPAIError as error:
                # An empty log has no end that could be sent.
                if error.http_status == 416:
                    return b""
                raise
            rows = log_bytes(response).splitlines(keepends=True)
            whole = response.status != 206 or len(response.body) < size
            if whole or len(rows) > lines:
                return b"".join(rows[-lines:])
            size *= 4

    def _fetch(self, uri: str, span: str | None) -> Response:
        """Read a log address; those of our own server need my token, others carry one themselves."""
        headers = {"range": span} if span else {}
        origin, path = split_url(uri)
        if "/api/v2/" in path and origin == self.transport.origin:
            return self.request("GET", path[path.index("/api/v2/") :], headers=headers)
        return self.request("GET", uri, headers=headers)


def pick(places: list[dict[str, str]], stream: str) -> str | None:
    """The address of the log called `stream`; where a task has a single log, that one."""
    found = next((item["uri"] for item in places if item["name"] == stream), None)
    if found is None and len(places) == 1 and places[0]["name"] == "all":
        return places[0]["uri"]
    return found


def log_bytes(response: Response) -> bytes:
    """A log as it was written; of a web page, the part that is the log."""
    is_page = "html" in response.headers.get("content-type", "")
    return log_text(response).encode() if is_page else response.body


def log_text(response: Response) -> str:
    """The text of a log; of the web pages that servers before 1.4 have, the part that is the log."""
    text = response.text
    if "html" not in response.headers.get("content-type", ""):
        return text
    from html import unescape
    from re import IGNORECASE, findall, sub

    parts = findall(r"(?s)<pre[^>]*>(.*?)</pre>", text, IGNORECASE)
    return unescape("".join(parts) if parts else sub(r"(?s)<[^>]+>", "", text))
