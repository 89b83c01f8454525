"""Following a job on a genuine OpenPAI server: its state and the ends of its logs, asked for again and again.

A server shows only the end of a log cheaply (16 KiB), under addresses good for two minutes, and moves
a full log aside. What each look shows is merged with what was shown before: nothing is lost or repeated.
"""

from __future__ import annotations

from codecs import getincrementaldecoder

from openpaisdk.errors import NotFoundError, OpenPAIError
from openpaisdk.rest.following import LineJoiner, LogLine, StateChange
from openpaisdk.rest.jobs import TERMINAL
from openpaisdk.rest.logs import TaskRef, log_text, pick, task_refs
from openpaisdk.transport.retry import may_pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from openpaisdk.rest.following import Following
    from openpaisdk.transport import Response

WINDOW = 16384
ADDRESSES_GOOD_FOR = 100.0
LISTS_APART = 10.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 5.0
OUTAGE = 300.0


class Gap(Exception):
    """The end that the server shows begins after what was shown last; the part between must be read."""


class Moved(Exception):
    """The log is not the one that was shown last: it was moved aside and a new one begun."""


class Seen:
    """How much of a log has been shown: bytes from its begin (None: not known), and the last of them."""

    __slots__ = ("last", "position")

    def __init__(self) -> None:
        self.position: int | None = 0
        self.last = b""

    def merge(self, window: bytes, start: int | None) -> bytes:
        """The new bytes of a window that begins at `start` of the log (None: not told), and remember them.

        Raises Gap or Moved and remembers nothing where the window does not connect.
        """
        if start is None and len(window) < WINDOW:
            start = 0
        if start is None or self.position is None:
            new = window[_overlap(self.last, window) :]
            if self.last and len(new) == len(window) and self.position is not None:
                raise Gap
            if not self.last and self.position == 0 and start is None:
                raise Gap
        else:
            if start + len(window) < self.position:
                raise Moved
            if start > self.position:
                raise Gap
            known = window[: self.position - start]
            if known and not (known.endswith(self.last) or self.last.endswith(known)):
                raise Moved
            new = window[self.position - start :]
        self.add(new)
        return new

    def add(self, new: bytes) -> None:
        """Count bytes as shown."""
        if self.position is not None:
            self.position += len(new)
        self.last = (self.last + new)[-WINDOW:]

    def begin_at(self, window: bytes, start: int | None) -> None:
        """Count everything up to the end of the window as shown."""
        if start is None and len(window) < WINDOW:
            start = 0
        self.position = None if start is None else start + len(window)
        self.last = window[-WINDOW:]


def _overlap(before: bytes, window: bytes) -> int:
    """How many bytes at the begin of the window are the last ones of `before`."""
    if not before or not window:
        return 0
    # Found by the last bytes shown, the nearest match first, so that a repeated line is not shown twice.
    probe = before[-64:]
    end = window.rfind(probe)
    while end >= 0:
        length = end + len(probe)
        if before.endswith(window[:length]) or window[:length].endswith(before):
            return length
        end = window.rfind(probe, 0, length - 1)
    return 0


class Log:
    """One log of one task attempt, with all that is needed to read on."""

    def __init__(self, cluster: Following, job: str, ref: TaskRef, stream: str) -> None:
        self.ref = ref
        self.stream = stream
        # One log for everything, as servers before 1.4 have it; read under the first name that is asked for.
        self.is_single = False
        self._cluster = cluster
        self._job = job
        self._seen = Seen()
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._places: dict[bool, tuple[float, list[dict[str, str]]]] = {}

    def read_on(self, tail: int | None = None) -> str:
        """The text that came since the last call; at first the whole log, or its last `tail` lines."""
        window, start = self._end()
        if tail is not None:
            self._seen.begin_at(window, start)
            new = b"".join(window.splitlines(keepends=True)[-tail:]) if tail > 0 else b""
        else:
            new = self._new(window, start)
        return self._decoder.decode(new)

    def _new(self, window: bytes, start: int | None) -> bytes:
        try:
            return self._seen.merge(window, start)
        except Gap:
            new = self._from(self._seen.position or 0, self.stream)
            self._seen.add(new)
            return new
        except Moved:
            rest = b""
            try:
                rest = self._from(self._seen.position or 0, self.stream + ".1")
            except NotFoundError:
                pass
            self._seen = Seen()
            return rest + self._new(window, start)

    def _end(self) -> tuple[bytes, int | None]:
        response = self._get(self.stream, tail=True, position=None)
        if "html" in response.headers.get("content-type", ""):
            return log_text(response).encode(), None
        return response.body, 0 if response.status == 200 else _start(response)

    def _from(self, position: int, stream: str) -> bytes:
        try:
            response = self._get(stream, tail=False, position=position)
        except OpenPAIError as error:
            if error.http_status == 416:
                return b""
            raise
        if response.status == 206:
            start = _start(response)
            return (
                response.body[position - start :] if start is not None and start < position else response.body
            )
        return response.body[position:]

    def _get(self, stream: str, tail: bool, position: int | None) -> Response:
        span = f"bytes={position}-" if position else None
        moved = stream.endswith(".1")
        for last_try in (False, True):
            places = self._addresses(tail, fresh=last_try)
            uri = pick(places, stream)
            self.is_single = uri is not None and stream not in [place["name"] for place in places]
            listed = self._places[tail][0]
            if uri is None and not last_try and (moved or self._cluster._clock() - listed > LISTS_APART):
                continue
            if uri is None:
                raise NotFoundError(f"{self.ref.task} has no log {stream!r}", code="NoTaskLogError")
            try:
                return self._cluster._fetch(uri, span)
            except OpenPAIError as error:
                if error.http_status != 403 or last_try:
                    raise
        raise AssertionError("unreachable")

    def _addresses(self, tail: bool, fresh: bool) -> list[dict[str, str]]:
        now = self._cluster._clock()
        known = self._places.get(tail)
        if known is None or fresh or now - known[0] > ADDRESSES_GOOD_FOR:
            ref = self.ref
            places = self._cluster.log_locations(
                self._job, ref.role, ref.index, job_attempt=ref.job_attempt, attempt=ref.attempt, tail=tail
            )
            known = self._places[tail] = (now, places)
        return known[1]


def _start(response: Response) -> int | None:
    """Where a partial answer begins, from its `Content-Range`."""
    span = response.headers.get("content-range", "").removeprefix("bytes").strip().partition("-")[0]
    return int(span) if span.isdigit() else None


def poll(
    cluster: Following,
    job: str,
    streams: Sequence[str],
    tasks: Sequence[str] | None,
    tail: int | None,
    lines: bool,
) -> Iterator[LogLine | StateChange]:
    """What `follow` yields, by asking."""
    logs: dict[tuple[str, str], Log] = {}
    single: dict[str, str] = {}
    joiner = LineJoiner(lines)
    last: tuple[Any, ...] = ()
    first_tail = tail
    pause, answered = FIRST_PAUSE, cluster._clock()
    detail: dict[str, Any] | None = None
    while True:
        try:
            detail = cluster.job(job)
            answered = cluster._clock()
        except OpenPAIError as error:
            passing = may_pass(error) or getattr(error, "reason", "") == "refused"
            if detail is None or not passing or cluster._clock() - answered > OUTAGE:
                raise
            cluster._sleep(LONGEST_PAUSE)
            continue
        status = detail.get("jobStatus", {})
        state = str(status.get("state"))
        change = StateChange(
            state,
            status.get("subState"),
            status.get("attemptId"),
            status.get("appExitCode"),
            state in TERMINAL,
        )
        seen = (change.state, change.sub_state, change.attempt)
        if seen != last and not change.final:
            last, pause = seen, FIRST_PAUSE
            yield change
        news = False
        refs = {ref.at: ref for ref in task_refs(detail) if tasks is None or ref.task in tasks}
        for ref in refs.values():
            for stream in streams:
                logs.setdefault((ref.at, stream), Log(cluster, job, ref, stream))
        for key, log in list(logs.items()):
            if single.get(key[0], log.stream) != log.stream:
                continue
            for piece in _read(log, first_tail, cluster):
                news = True
                yield from joiner.add(piece)
            # A task attempt that the detail no longer shows was read once more, and is over.
            if key[0] not in refs:
                del logs[key]
            elif log.is_single:
                single[key[0]] = log.stream
        first_tail = None if logs else first_tail
        if change.final:
            yield from joiner.flush()
            yield change
            return
        pause = FIRST_PAUSE if news else min(pause * 1.5, LONGEST_PAUSE)
        cluster._sleep(pause)


def _read(log: Log, tail: int | None, cluster: Following) -> list[LogLine]:
    try:
        text = log.read_on(tail)
    except OpenPAIError as error:
        # Not placed yet (404, or 500 on OpenPAI), a node that is away, too many requests: look again later.
        if error.http_status in (400, 401):
            raise
        return []
    if not text:
        return []
    stream = "all" if log.is_single else log.stream
    return [LogLine(log.ref.task, stream, text, log.ref.at, None)]
