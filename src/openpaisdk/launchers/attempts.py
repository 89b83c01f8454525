"""What launchers on this machine share: attempts that live in a folder and are watched through its
records."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path

import psutil

from openpaisdk.errors import ConflictError, UsageError
from openpaisdk.launchers.contract import (
    CREATION_FAILED,
    CREATION_REFUSED,
    Exit,
    LaunchError,
    Observation,
    OnEvent,
    OnExit,
    Stream,
    TaskSpec,
)
from openpaisdk.launchers.folder import Intent, TaskFolder, read_plain
from openpaisdk.launchers.watch import ExitWatch, boot_id

SLICE_SECONDS = 0.005
REMEMBERED = 1024  # ended attempts; older ones are read from their folders again
CLOSE_SECONDS = 2.0
AGAIN_SECONDS = 2.0


class Attempt:
    """One task attempt that this server started or adopted. `pid` is 0 until a process is known."""

    __slots__ = ("ended", "folder", "handle", "intent", "observation", "own", "pid", "rounds")

    def __init__(self, handle: str, folder: TaskFolder, intent: Intent) -> None:
        self.handle = handle
        self.folder = folder
        self.intent = intent
        self.pid = 0
        self.own = False
        self.rounds = 0
        self.observation: Observation | None = None
        self.ended = asyncio.Event()

    @property
    def running(self) -> bool:
        return self.observation is None or self.observation.state == "running"


class FolderLauncher:
    """Everything of the launcher contract but starting, finding and ending processes."""

    name = "folder"

    def __init__(self) -> None:
        self._attempts: dict[str, Attempt] = {}
        self._launching: dict[str, asyncio.Event] = {}
        self._ended: deque[str] = deque()
        self._watch = ExitWatch()
        self._on_exit: OnExit | None = None
        self._on_event: OnEvent | None = None
        self._background: set[asyncio.Task[None]] = set()

    def subscribe(self, on_exit: OnExit, on_event: OnEvent) -> None:
        self._on_exit, self._on_event = on_exit, on_event

    async def launch(self, gang: Sequence[TaskSpec]) -> list[str]:
        if not gang:
            return []
        handles = [self._handle(spec) for spec in gang]
        for handle in handles:
            while handle in self._launching:
                await self._launching[handle].wait()
        launched = asyncio.Event()
        self._launching.update(dict.fromkeys(handles, launched))
        fresh: list[tuple[Attempt, TaskSpec]] = []
        try:
            await self._before(gang)
            known = await self._prepare_all(gang, fresh)
            await self._start(fresh)
        except BaseException as error:
            self._launching = {
                handle: event for handle, event in self._launching.items() if event != launched
            }
            await self._abandon([attempt for attempt, _ in fresh])
            if isinstance(error, OSError):
                raise _cannot_start(gang, error) from error
            if isinstance(error, UsageError):
                raise LaunchError(error.message, task_code=CREATION_REFUSED, hint=error.hint) from error
            raise
        finally:
            self._launching = {
                handle: event for handle, event in self._launching.items() if event != launched
            }
            launched.set()
        self._adopt(known)
        for attempt in known:
            if not attempt.running:
                asyncio.get_running_loop().call_soon(self._tell_exit, attempt)
        return handles

    async def _prepare_all(
        self, gang: Sequence[TaskSpec], fresh: list[tuple[Attempt, TaskSpec]]
    ) -> list[Attempt]:
        """Write the files of the new attempts, which go into `fresh`; returns the others."""
        known = []
        pause = Slices()
        for spec in gang:
            attempt = self._prepare(spec)
            if attempt.pid or attempt.folder.claimed():
                known.append(attempt)
            else:
                fresh.append((attempt, spec))
            await pause()
        return known

    def observe(self, handles: Iterable[str]) -> dict[str, Observation]:
        wanted = list(handles)
        self._adopt([attempt for handle in wanted if (attempt := self._seen(handle))])
        return {handle: self._view(self._attempts.get(handle)) for handle in wanted}

    def logs(self, handle: str, stream: Stream, start: int, *, limit: int = 1 << 20) -> bytes:
        return read_plain(self._folder(handle).file(stream), start, limit)

    def log_path(self, handle: str, stream: Stream) -> Path | None:
        return self._folder(handle).log(stream)

    async def forget(self, handles: Iterable[str]) -> None:
        wanted = list(handles)
        running = [handle for handle, seen in self.observe(wanted).items() if seen.state == "running"]
        # Files are not pulled away from under a process.
        await self.kill(running, grace=0.0)
        attempts = [attempt for handle in wanted if (attempt := self._attempts.pop(handle, None))]
        await self._release(attempts)
        for attempt in attempts:
            await asyncio.to_thread(shutil.rmtree, attempt.folder.path, ignore_errors=True)

    async def close(self) -> None:
        self._watch.close()
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._attempts.clear()

    async def _before(self, gang: Sequence[TaskSpec]) -> None:
        """Whatever has to be there before a folder is made (images)."""

    def _files(self, spec: TaskSpec, intent: Intent) -> dict[str, bytes]:
        """The files of a new attempt."""
        raise NotImplementedError

    def _intent(self, spec: TaskSpec) -> Intent:
        raise NotImplementedError

    async def _start(self, fresh: Sequence[tuple[Attempt, TaskSpec]]) -> None:
        """Start all, set `pid` and watch them, or raise."""
        raise NotImplementedError

    async def _abandon(self, attempts: Sequence[Attempt]) -> None:
        """Make sure that nothing of a gang which could not be started runs, now or later."""
        for attempt in attempts:
            attempt.folder.ask_to_stop()
            attempt.folder.forbid()
        await asyncio.shield(self.kill([attempt.handle for attempt in attempts], grace=0.0))

    async def kill(self, handles: Iterable[str], *, grace: float) -> None:
        raise NotImplementedError

    def _locate(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Set the `pid` of those that a process runs for; returns those about which nothing can be said
        now."""
        raise NotImplementedError

    def _finish(self, attempt: Attempt) -> None:
        """The process of the attempt has ended: learn how, clear up, call `_conclude`."""
        raise NotImplementedError

    async def _release(self, attempts: Sequence[Attempt]) -> None:
        """Give back what an attempt holds outside its folder."""

    def _handle(self, spec: TaskSpec) -> str:
        return f"{self.name}:{spec.folder}"

    def _prepare(self, spec: TaskSpec) -> Attempt:
        handle = self._handle(spec)
        attempt = self._attempts.get(handle)
        if attempt:
            return attempt
        folder = TaskFolder(spec.folder)
        intent = folder.intent()
        if intent is None:
            # A torn or missing intent means that nothing was started: whatever is there may be written anew.
            intent = self._intent(spec)
            try:
                folder.prepare(self._files(spec, intent))
                folder.intend(intent)
            except (OSError, UsageError):
                self._discard(intent)
                raise
        elif intent.key != spec.key:
            raise LaunchError(
                f"task {spec.key}: its folder {spec.folder} belongs to task {intent.key}",
                key=spec.key,
                hint="give every task attempt a folder of its own",
            )
        attempt = self._attempts[handle] = Attempt(handle, folder, intent)
        return attempt

    def _seen(self, handle: str) -> Attempt | None:
        attempt = self._attempts.get(handle)
        if attempt is None and handle.startswith(self.name + ":") and handle not in self._launching:
            folder = self._folder(handle)
            intent = folder.intent()
            if intent is None:
                folder.forbid()
            else:
                attempt = self._attempts[handle] = Attempt(handle, folder, intent)
        return attempt

    def _adopt(self, attempts: Sequence[Attempt]) -> None:
        """Find out about attempts of an earlier server; watch those that run."""
        open_ones = [
            attempt
            for attempt in attempts
            if attempt.observation is None and not attempt.pid and attempt.handle not in self._launching
        ]
        unsure = self._locate(open_ones)
        sure = [attempt for attempt in open_ones if attempt not in unsure]
        # What nobody runs shall stay so; a wrapper that was quicker than this is looked up once more.
        absent = [attempt for attempt in sure if not attempt.pid and not attempt.folder.claimed()]
        unsure += self._locate([attempt for attempt in absent if not attempt.folder.forbid()])
        for attempt in sure:
            if attempt.pid:
                self._follow(attempt)
            elif attempt not in unsure:
                self._settle(attempt, attempt.folder.recorded_exit())
                self._clear(attempt)
        if unsure:
            self._later(self._adopt_later(unsure))

    async def _adopt_later(self, attempts: Sequence[Attempt]) -> None:
        await asyncio.sleep(AGAIN_SECONDS)
        self._adopt(attempts)
        for attempt in attempts:
            if not attempt.running:
                self._tell_exit(attempt)

    def _discard(self, intent: Intent) -> None:
        """Give back what an intent holds that could not be written."""

    def _clear(self, attempt: Attempt) -> None:
        """Clear up behind an attempt that was found ended."""

    def _follow(self, attempt: Attempt) -> None:
        self._watch.add(attempt.pid, lambda: self._finish(attempt))

    def _claimed_this_boot(self, attempt: Attempt) -> bool:
        """False when the machine was restarted after the attempt started."""
        claim = attempt.folder.claim()
        if claim and claim.boot:
            return claim.boot == boot_id()
        started = attempt.folder.started_at()
        return started is None or started >= psutil.boot_time()

    def _settle(self, attempt: Attempt, found: Exit | None) -> None:
        claim = attempt.folder.claim()
        started = None if claim and not claim.pid else attempt.folder.started_at()
        attempt.observation = Observation("ended" if found else "lost", found, started)
        attempt.ended.set()
        self._ended.append(attempt.handle)
        if len(self._ended) > REMEMBERED:
            self._attempts.pop(self._ended.popleft(), None)

    def _conclude(self, attempt: Attempt, found: Exit | None) -> None:
        self._settle(attempt, found)
        self._tell_exit(attempt)

    def _view(self, attempt: Attempt | None) -> Observation:
        if attempt is None:
            return Observation("lost")
        if attempt.observation is not None:
            return attempt.observation
        return Observation("running", None, attempt.folder.started_at())

    def _folder(self, handle: str) -> TaskFolder:
        return TaskFolder(handle.partition(":")[2])

    def _running_intent(self, handle: str) -> Intent:
        attempt = self._seen(handle)
        if attempt is None or self.observe([handle])[handle].state != "running":
            raise ConflictError(
                "the task does not run", hint="commands can be run in a task between its start and its end"
            )
        return attempt.intent

    def _tell_exit(self, attempt: Attempt) -> None:
        if self._on_exit:
            self._on_exit(attempt.handle)

    def _tell(self, key: str, kind: str, reason: str, message: str) -> None:
        if self._on_event:
            self._on_event(key, kind, reason, message)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` beside the caller, until close() at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class Slices:
    """Hands the event loop back every few milliseconds of a long gang."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def __call__(self) -> None:
        if time.monotonic() - self._since > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = time.monotonic()


async def all_ended(attempts: Sequence[Attempt], timeout: float) -> None:
    """Wait until every attempt has ended, but not longer than `timeout` seconds."""
    waiting = [asyncio.ensure_future(attempt.ended.wait()) for attempt in attempts]
    if waiting:
        _, open_ones = await asyncio.wait(waiting, timeout=timeout)
        for one in open_ones:
            one.cancel()


def _cannot_start(gang: Sequence[TaskSpec], error: OSError) -> LaunchError:
    place = error.filename or gang[0].folder
    return LaunchError(
        f"task {gang[0].key}: cannot be started: {error.strerror or error} ({place})",
        task_code=CREATION_FAILED,
        key=gang[0].key,
        hint="look at the free space, the permissions and the process limit of the server's machine",
    )
