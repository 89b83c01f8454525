"""Commands run inside a running task, on servers that offer it (ours)."""

from __future__ import annotations

from openpaisdk.rest.calls import Calls, lacks_api
from openpaisdk.transport import iter_events, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


class Execution(Calls):
    """Running commands in tasks, and signals to them."""

    def signal(self, name: str, event: str = "checkpoint", *, task: str | None = None) -> list[str]:
        """Call for an event in the callbacks of a running job; the tasks (`role/index`) that were told."""
        from openpaisdk.errors import NotFoundError, UsageError

        data = {"name": event, **({"task": task} if task else {})}
        try:
            found = self._json("POST", self.job_path(name) + "/signal", send=data)
        except NotFoundError as error:
            if lacks_api(error):
                raise UsageError(
                    f"{self.portal_uri} cannot pass signals on to jobs",
                    hint="only clusters that run our own server can; publish checkpoints as the program goes",
                ) from error
            raise
        return list(found["tasks"])

    def exec_start(
        self,
        name: str,
        command: Sequence[str],
        *,
        task: str | None = None,
        tty: bool = False,
        rows: int = 24,
        columns: int = 80,
    ) -> str:
        """Start a command in the environment of a task (`role/index`); the id of the run."""
        data: dict[str, Any] = {"command": list(command), "tty": tty, "rows": rows, "cols": columns}
        if task is not None:
            data["task"] = task
        return str(self._json("POST", self.job_path(name) + "/exec", send=data)["id"])

    def exec_output(self, name: str, run: str) -> Iterator[tuple[str, bytes]]:
        """What the command writes, as it comes: ("out" or "err", bytes), and at last ("exit", its code)."""
        from binascii import a2b_base64

        path = f"{self.job_path(name)}/exec/{quote(run)}/output"
        with self.request("GET", path, stream=True, timeout=3600.0) as response:
            for event, _, data in iter_events(response):
                yield event, a2b_base64(data)

    def exec_input(self, name: str, run: str, data: bytes, *, end: bool = False) -> None:
        """Write to the command; `end` closes its input."""
        path = f"{self.job_path(name)}/exec/{quote(run)}/input"
        self.request(
            "POST",
            path,
            query={"eof": 1 if end else None},
            headers={"content-type": "application/octet-stream"},
            body=data,
        )

    def exec_resize(self, name: str, run: str, rows: int, columns: int) -> None:
        """Tell the command the new size of the terminal."""
        path = f"{self.job_path(name)}/exec/{quote(run)}/resize"
        self._json("POST", path, send={"rows": rows, "cols": columns})
