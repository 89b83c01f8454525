"""Server-sent events: a job's logs and states in one stream from WAITING to its end, or one log by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec

from openpaisdk.scheduler.transitions import shown_states
from openpaisdk.server.logfiles import Tail
from openpaisdk.server.rows import JobRow, TaskRow

HEARTBEAT = 15.0
LINE_SECONDS = 0.002  # in which a program that writes a line in pieces writes all of it
PIECES_PER_TURN = 4  # of one log, before the others are looked at
Key = tuple[int, str, int, int, str]


class Choice(NamedTuple):
    """What a follower wants; `positions` are byte offsets by `attempt/role/index/task attempt/stream`."""

    streams: tuple[str, ...] = ("stdout", "stderr")
    tasks: frozenset[str] = frozenset()
    tail: int | None = None
    positions: dict[str, int] = {}  # noqa: RUF012 - never changed


def frame(event: str, data: Any, id_: int | None = None) -> bytes:
    """One event of a stream."""
    head = b"" if id_ is None else b"id: %d\n" % id_
    return b"%sevent: %s\ndata: %s\n\n" % (head, event.encode(), msgspec.json.encode(data))


class _Followed:
    """A log with its place in the job."""

    __slots__ = ("key", "over", "tail", "unsubscribe")

    def __init__(self, key: Key, tail: Tail, unsubscribe: Callable[[], None]) -> None:
        self.key = key
        self.tail = tail
        self.over = False
        self.unsubscribe = unsubscribe

    def close(self) -> None:
        self.unsubscribe()
        self.tail.close()


class JobFollower:
    """One client that follows a whole job across its attempts."""

    def __init__(self, services: Any, job: JobRow, choice: Choice) -> None:
        self._services = services
        self._job = job
        self._choice = choice
        self._signal = asyncio.Event()
        self._logs: dict[Key, _Followed] = {}
        self._done: set[Key] = set()
        self._dirty: set[Key] = set()
        self._version = -1
        self._shown: tuple[Any, ...] = ()
        self._job_changed = True
        self._first_attempt = _first_attempt(job, choice)
        self._late = True

    async def stream(self) -> AsyncIterator[bytes]:
        """The events; ends with `end` when the job is over and every log is told."""
        unsubscribe = self._services.loop.changes.subscribe(self._job.id, self._on_job)
        try:
            while not self._services.closing.is_set():
                self._signal.clear()
                pieces = self._look() + self._read()
                if pieces:
                    yield b"".join(pieces)
                if self._dirty:
                    await asyncio.sleep(0)  # a client that reads fast must not keep everybody else waiting
                    continue
                if self._job.finished and not self._logs and not self._job_changed:
                    yield frame("end", self._state())
                    return
                if not await self._changed():
                    yield b": still here\n\n"
        finally:
            unsubscribe()
            for log in self._logs.values():
                log.close()

    async def _changed(self) -> bool:
        try:
            await asyncio.wait_for(self._signal.wait(), HEARTBEAT)
        except asyncio.TimeoutError:
            return False
        if self._dirty:
            await asyncio.sleep(LINE_SECONDS)
        return True

    def _on_job(self) -> None:
        self._job_changed = True
        self._signal.set()

    def _on_log(self, key: Key) -> Callable[[], None]:
        def wake() -> None:
            self._dirty.add(key)
            self._signal.set()

        return wake

    def _look(self) -> list[bytes]:
        """Take in what changed in the job: its state, new logs, logs that will not grow any more."""
        if not self._job_changed:
            return []
        self._job_changed = False
        job = self._services.jobs.by_id(self._job.id)
        if job is None:  # deleted meanwhile
            self._job = self._job._replace(sub_state="Completed")
            for log in self._logs.values():
                log.over = True
            return []
        if job.version == self._version:
            return []
        self._job, self._version = job, job.version
        if job.attempt is not None:
            for attempt in range(self._first_attempt, job.attempt + 1):
                for task in self._services.jobs.tasks_with_history(job.id, attempt):
                    self._take_up(attempt, task)
            # Attempts before the newest one cannot change any more.
            self._first_attempt = job.attempt
        self._late = False
        shown = (job.state, job.sub_state, job.attempt, job.exit_code)
        if shown == self._shown:
            return []
        self._shown = shown
        return [frame("state", self._state())]

    def _take_up(self, attempt: int, task: TaskRow) -> None:
        name = f"{task.role}/{task.idx}"
        if task.handle is None or (self._choice.tasks and name not in self._choice.tasks):
            return
        over = task.attempt_completed is not None
        for stream in self._choice.streams:
            key = (attempt, task.role, task.idx, task.task_attempt, stream)
            if key in self._done:
                continue
            log = self._logs.get(key)
            if log is None:
                log = self._open(key, task.handle)
                if log is None:
                    continue
            if over and not log.over:
                log.over = True
                self._dirty.add(key)

    def _open(self, key: Key, handle: str) -> _Followed | None:
        path = self._services.launcher.log_path(handle, key[4])
        if path is None:
            return None
        position = self._choice.positions.get("/".join(map(str, key)))
        tail = Tail(path, position or 0)
        if position is None and self._choice.tail is not None and self._late:
            tail.seek_lines(self._choice.tail)
        unsubscribe = self._services.watcher.subscribe(str(path), self._on_log(key))
        log = self._logs[key] = _Followed(key, tail, unsubscribe)
        self._dirty.add(key)
        return log

    def _read(self) -> list[bytes]:
        pieces: list[bytes] = []
        dirty, self._dirty = self._dirty, set()
        for key in sorted(dirty):
            log = self._logs.get(key)
            if log is None:
                continue
            for _ in range(PIECES_PER_TURN):
                text = log.tail.read(to_the_end=log.over)
                if not text:
                    break
                pieces.append(frame("log", _piece(key, log.tail.offset, text)))
            else:
                self._dirty.add(key)
                continue
            if log.over:
                log.close()
                del self._logs[key]
                self._done.add(key)
        return pieces

    def _state(self) -> dict[str, Any]:
        job = self._job
        return {
            "state": job.state,
            "subState": job.sub_state,
            "attempt": job.attempt,
            "attemptState": shown_states(job.sub_state, job.exit_code)[1],
            "executionType": job.execution_type,
            "exitCode": job.exit_code,
            "retries": job.retries,
        }


def _piece(key: Key, offset: int, text: str) -> dict[str, Any]:
    attempt, role, index, task_attempt, stream = key
    return {
        "task": f"{role}/{index}",
        "at": f"{attempt}/{role}/{index}/{task_attempt}",
        "stream": stream,
        "offset": offset,
        "text": text,
    }


def _first_attempt(job: JobRow, choice: Choice) -> int:
    """The attempt to begin with: the newest, or the one that a client who comes back was at."""
    known = [int(number) for place in choice.positions if (number := place.partition("/")[0]).isdigit()]
    return min([*known, job.attempt or 0])


async def stream_log(
    services: Any, job: JobRow, find: Callable[[], TaskRow | None], tail: Tail
) -> AsyncIterator[bytes]:
    """One log from its position on until its task is over; the id of an event is the offset after it."""
    signal = asyncio.Event()
    ends = [
        services.loop.changes.subscribe(job.id, signal.set),
        services.watcher.subscribe(str(tail.path), signal.set),
    ]
    try:
        while not services.closing.is_set():
            signal.clear()
            task = find()
            over = task is None or task.attempt_completed is not None
            while text := tail.read(to_the_end=over):
                yield frame("log", {"offset": tail.offset, "text": text}, tail.offset)
                await asyncio.sleep(0)
            if over:
                yield frame("end", {"exitCode": task.attempt_exit_code if task else None}, tail.offset)
                return
            try:
                await asyncio.wait_for(signal.wait(), HEARTBEAT)
            except asyncio.TimeoutError:
                yield b": still here\n\n"
    finally:
        for end in ends:
            end()
        tail.close()
