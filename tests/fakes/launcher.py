"""A launcher without processes: deterministic, and bound by the same contract suite as the real ones.

It understands the few script lines that the suite and server tests need: `echo WORDS`, `echo WORDS >&2`,
`echo "$NAME"`, `exit N`, `sleep N` (runs until ended from outside), `trap '' TERM` and `kill -9 $$`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from openpaisdk.errors import ConflictError
from openpaisdk.launchers import Capacity, ExecPlan, Exit, LaunchError, Node, Observation, TaskSpec
from openpaisdk.launchers.contract import OnEvent, OnExit, Stream


class FakeTask:
    """One task of the pretended machine."""

    def __init__(self, spec: TaskSpec, at: float) -> None:
        self.spec = spec
        self.started_at = at
        self.exit: Exit | None = None
        self.lost = False
        self.ignores_term = False
        self.lines = spec.script.splitlines()


class FakeWorld:
    """The pretended machine: it outlives any number of launchers, as a real one outlives servers."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.tasks: dict[str, FakeTask] = {}
        self.starts: list[str] = []
        self.refuse: str | None = None
        self.clock = clock
        self.watchers: set[FakeLauncher] = set()

    def end(self, handle: str, code: int, *, oom: bool = False) -> None:
        """The task ends by itself with `code`."""
        task = self.tasks[handle]
        if task.exit is None:
            signal = code - 128 if 128 < code <= 192 else None
            task.exit = Exit(code=code, signal=signal, oom=oom, at=self.clock())
            self._tell(handle)

    def lose(self, handle: str) -> None:
        """The machine forgets how the task ended."""
        self.tasks[handle].lost = True
        self._tell(handle)

    def print(self, handle: str, text: str, stream: Stream = "stdout") -> None:
        with Path(self.tasks[handle].spec.folder, stream).open("ab") as log:
            log.write(text.encode())

    def run(self, handle: str) -> None:
        task = self.tasks[handle]
        for line in task.lines:
            words = line.split(None, 1)
            if line.startswith("echo "):
                text = words[1].removesuffix(" >&2")
                if text.startswith('"$'):
                    text = task.spec.env[text.strip('"$')]
                self.print(handle, text + "\n", "stderr" if line.endswith(" >&2") else "stdout")
            elif words[:1] == ["exit"]:
                return self.end(handle, int(words[1]))
            elif words[:1] == ["sleep"]:
                return None
            elif line == "trap '' TERM":
                task.ignores_term = True
            elif line == "kill -9 $$":
                return self.end(handle, 137)
            else:
                raise ValueError(f"the fake launcher does not understand {line!r}")
        return self.end(handle, 0)

    def _tell(self, handle: str) -> None:
        for launcher in self.watchers:
            launcher.ended(handle)


class FakeLauncher:
    """The contract over a FakeWorld."""

    name = "fake"

    def __init__(self, world: FakeWorld | None = None, *, capacity: Capacity | None = None) -> None:
        self.world = world or FakeWorld()
        self._capacity = capacity or Capacity((Node("fake", "127.0.0.1", 8, 65536, (0, 1, 2, 3)),))
        self._watched: set[str] = set()
        self._on_exit: OnExit | None = None
        self._on_event: OnEvent | None = None
        self.world.watchers.add(self)

    def capacity(self) -> Capacity | None:
        return self._capacity

    def subscribe(self, on_exit: OnExit, on_event: OnEvent) -> None:
        self._on_exit, self._on_event = on_exit, on_event

    async def launch(self, gang: Sequence[TaskSpec]) -> list[str]:
        if self.world.refuse:
            raise LaunchError(self.world.refuse, key=gang[0].key)
        handles = [f"{self.name}:{spec.folder}" for spec in gang]
        for handle, spec in zip(handles, gang, strict=True):
            known = self.world.tasks.get(handle)
            if known and known.spec.key != spec.key:
                raise LaunchError(f"task {spec.key}: {spec.folder} belongs to {known.spec.key}", key=spec.key)
        loop = asyncio.get_running_loop()
        for handle, spec in zip(handles, gang, strict=True):
            self._watched.add(handle)
            known = self.world.tasks.get(handle)
            if known is None:
                os.makedirs(spec.folder, exist_ok=True)
                self.world.tasks[handle] = FakeTask(spec, self.world.clock())
                self.world.starts.append(spec.key)
                for stream in ("stdout", "stderr"):
                    Path(spec.folder, stream).touch()
                loop.call_soon(self.world.run, handle)
            elif known.exit or known.lost:
                loop.call_soon(self.ended, handle)
        return handles

    def observe(self, handles: Iterable[str]) -> dict[str, Observation]:
        return {handle: self._look(handle) for handle in handles}

    def _look(self, handle: str) -> Observation:
        task = self.world.tasks.get(handle)
        if task is None or task.lost:
            return Observation("lost")
        if task.exit:
            return Observation("ended", task.exit, task.started_at)
        self._watched.add(handle)
        return Observation("running", None, task.started_at)

    async def kill(self, handles: Iterable[str], *, grace: float) -> None:
        for handle in handles:
            if self._look(handle).state == "running":
                self.world.end(handle, 137 if self.world.tasks[handle].ignores_term else 143)

    def logs(self, handle: str, stream: Stream, start: int, *, limit: int = 1 << 20) -> bytes:
        path = self.log_path(handle, stream)
        return path.read_bytes()[start : start + limit] if path else b""

    def log_path(self, handle: str, stream: Stream) -> Path | None:
        path = Path(handle.partition(":")[2], stream)
        return path if path.exists() else None

    def exec_command(self, handle: str, command: Sequence[str], *, tty: bool = False) -> ExecPlan:
        if self._look(handle).state != "running":
            raise ConflictError("the task does not run", hint="start it first")
        spec = self.world.tasks[handle].spec
        return ExecPlan(list(command) or ["/bin/sh"], dict(spec.env), spec.folder)

    async def forget(self, handles: Iterable[str]) -> None:
        for handle in handles:
            if self.world.tasks.pop(handle, None):
                shutil.rmtree(handle.partition(":")[2], ignore_errors=True)

    async def close(self) -> None:
        self.world.watchers.discard(self)
        self._watched.clear()

    def ended(self, handle: str) -> None:
        if handle in self._watched:
            self._watched.discard(handle)
            if self._on_exit:
                self._on_exit(handle)
