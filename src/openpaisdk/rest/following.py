"""Following a job: its log lines and changes of state as they happen, across broken connections."""

from __future__ import annotations

import json

from openpaisdk.errors import NotFoundError, OpenPAIError
from openpaisdk.rest.calls import lacks_api
from openpaisdk.rest.jobs import TERMINAL
from openpaisdk.rest.logs import Logs
from openpaisdk.transport import iter_events
from openpaisdk.transport.retry import may_pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from openpaisdk.transport import Response

    Record = "LogLine | StateChange"

# The server sends a sign of life every 15 s.
SILENCE = 60.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
OUTAGE = 300.0
_LONGEST_QUERY = 4000
# A log without line breaks is not gathered for ever.
LONGEST_LINE = 1_000_000


class LogLine:
    """A line (or, when pieces were asked for, a piece) of the log of one task attempt."""

    __slots__ = ("at", "offset", "stream", "task", "text")
    kind = "log"

    def __init__(self, task: str, stream: str, text: str, at: str, offset: int | None) -> None:
        self.task = task
        self.stream = stream
        self.text = text
        self.at = at
        self.offset = offset

    def as_dict(self) -> dict[str, Any]:
        """The record as `-o json` shows it."""
        return {"kind": "log", "task": self.task, "stream": self.stream, "text": self.text}

    def __repr__(self) -> str:
        return f"LogLine({self.task!r}, {self.stream!r}, {self.text!r})"


class StateChange:
    """A job is in another state; `final` with the last one."""

    __slots__ = ("attempt", "exit_code", "final", "state", "sub_state")
    kind = "state"

    def __init__(
        self, state: str, sub_state: str | None, attempt: int | None, exit_code: int | None, final: bool
    ) -> None:
        self.state = state
        self.sub_state = sub_state
        self.attempt = attempt
        self.exit_code = exit_code
        self.final = final

    def as_dict(self) -> dict[str, Any]:
        """The record as `-o json` shows it."""
        return {
            "kind": "state",
            "state": self.state,
            "subState": self.sub_state,
            "attempt": self.attempt,
            "exitCode": self.exit_code,
            "final": self.final,
        }

    def __repr__(self) -> str:
        return f"StateChange({self.state!r}, attempt={self.attempt!r}, exit_code={self.exit_code!r})"


class LineJoiner:
    """Makes whole lines of the pieces in which logs arrive, each log apart."""

    def __init__(self, lines: bool) -> None:
        self._lines = lines
        self._open: dict[tuple[str, str], LogLine] = {}

    def add(self, piece: LogLine) -> Iterator[LogLine]:
        """The lines that the piece completes; without the line break."""
        if not self._lines:
            yield piece
            return
        key = (piece.at, piece.stream)
        before = self._open.pop(key, None)
        *whole, rest = ((before.text if before else "") + piece.text).split("\n")
        for text in whole:
            yield LogLine(piece.task, piece.stream, text, piece.at, piece.offset)
        if len(rest) > LONGEST_LINE:
            yield LogLine(piece.task, piece.stream, rest, piece.at, piece.offset)
        elif rest:
            self._open[key] = LogLine(piece.task, piece.stream, rest, piece.at, piece.offset)

    def flush(self) -> Iterator[LogLine]:
        """What was left without a line break."""
        while self._open:
            yield self._open.pop(next(iter(self._open)))


class Following(Logs):
    """Following jobs."""

    def follow(
        self,
        name: str,
        user: str | None = None,
        *,
        streams: Sequence[str] = ("stdout", "stderr"),
        tasks: Sequence[str] | None = None,
        tail: int | None = None,
        lines: bool = True,
    ) -> Iterator[LogLine | StateChange]:
        """Log lines and state changes of a job from its begin (or its last `tail` lines) until it is over.

        `tasks` are `role/index` and leave the others out. With `lines=False` text comes in pieces as it was
        written, for progress bars. The last record is a StateChange with `final` set. Reconnects by itself
        and neither loses nor repeats text.
        """
        if self.follows is not False:
            try:
                yield from self._stream(name, user, streams, tasks, tail, lines)
                return
            except NotFoundError as error:
                if not lacks_api(error):
                    raise
                self.follows = False
        from openpaisdk.rest.tailing import poll

        yield from poll(self, name if user is None else f"{user}~{name}", streams, tasks, tail, lines)

    # Whether the server streams; unknown until it was asked.
    follows: bool | None = None

    def _stream(
        self,
        name: str,
        user: str | None,
        streams: Sequence[str],
        tasks: Sequence[str] | None,
        tail: int | None,
        lines: bool,
    ) -> Iterator[LogLine | StateChange]:
        asked: dict[str, Any] = {
            "streams": list(streams),
            "tasks": list(tasks) if tasks else None,
            "tail": tail,
        }
        positions: dict[str, int] = {}
        joiner = LineJoiner(lines)
        last: tuple[Any, ...] = ()
        pause, heard = FIRST_PAUSE, self._clock()
        while True:
            try:
                with self._open_follow(self.job_path(name, user) + "/follow", asked, positions) as response:
                    self.follows = True
                    for event, _, data in iter_events(response):
                        pause, heard = FIRST_PAUSE, self._clock()
                        found = json.loads(data)
                        if event == "log":
                            key = f"{found['at']}/{found['stream']}"
                            if found["offset"] <= positions.get(key, -1):
                                continue
                            positions[key] = found["offset"]
                            yield from joiner.add(
                                LogLine(
                                    found["task"],
                                    found["stream"],
                                    found["text"],
                                    found["at"],
                                    found["offset"],
                                )
                            )
                        elif event == "state":
                            seen = (found.get("state"), found.get("subState"), found.get("attempt"))
                            # The last state comes with `end`, after the rest of the logs.
                            if seen != last and seen[0] not in TERMINAL:
                                last = seen
                                yield _change(found, final=False)
                        elif event == "end":
                            yield from joiner.flush()
                            yield _change(found, final=True)
                            return
            except OpenPAIError as error:
                passing = may_pass(error) or getattr(error, "reason", "") == "refused"
                if not (passing and self.follows and self._clock() - heard < OUTAGE):
                    raise
                if self._notice is not None and pause > 1:
                    self._notice(f"{error.message}; following goes on as soon as it is back")
            asked["tail"] = None if positions else tail
            self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _open_follow(self, path: str, asked: dict[str, Any], positions: dict[str, int]) -> Response:
        known = json.dumps(positions) if positions else None
        if known is None or len(known) < _LONGEST_QUERY:
            query = {**asked, "positions": known}
            return self.request("GET", path, query=query, stream=True, timeout=SILENCE, safe=False)
        body = json.dumps({**{k: v for k, v in asked.items() if v is not None}, "positions": positions})
        headers = {"content-type": "application/json"}
        return self.request("POST", path, headers=headers, body=body.encode(), stream=True, timeout=SILENCE)


def _change(found: dict[str, Any], final: bool) -> StateChange:
    return StateChange(
        str(found.get("state")), found.get("subState"), found.get("attempt"), found.get("exitCode"), final
    )
