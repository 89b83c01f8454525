"""The default launcher: containers for tasks with an image where an engine is there, processes otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from openpaisdk.launchers.container import ContainerLauncher
from openpaisdk.launchers.contract import (
    Capacity,
    ExecPlan,
    Launcher,
    Observation,
    OnEvent,
    OnExit,
    Stream,
    TaskSpec,
)
from openpaisdk.launchers.engine import Engine, find_engine
from openpaisdk.launchers.process import ProcessLauncher


class AutoLauncher:
    """Two launchers behind one; a handle says by its first word which of them it belongs to."""

    name = "auto"

    def __init__(
        self,
        *,
        fake_gpus: int | None = None,
        engine: str | None = None,
        find: Callable[[str | None], Engine | None] = find_engine,
    ) -> None:
        self._process = ProcessLauncher(fake_gpus=fake_gpus)
        self._container = ContainerLauncher(fake_gpus=fake_gpus, engine=engine, find=self._found)
        self._find = find
        self._engine: Engine | None = None
        self._looked = False

    def _found(self, wanted: str | None) -> Engine | None:
        if not self._looked:
            self._engine = self._find(wanted)
            self._looked = True
        return self._engine

    def capacity(self) -> Capacity:
        return self._process.capacity()

    def subscribe(self, on_exit: OnExit, on_event: OnEvent) -> None:
        self._process.subscribe(on_exit, on_event)
        self._container.subscribe(on_exit, on_event)

    async def launch(self, gang: Sequence[TaskSpec]) -> list[str]:
        if not self._looked and any(spec.image for spec in gang):
            await asyncio.to_thread(self._found, self._container.wanted)
        inside = [spec for spec in gang if spec.image and self._engine]
        outside = [spec for spec in gang if not (spec.image and self._engine)]
        handles = dict(zip((spec.key for spec in inside), await self._container.launch(inside)))
        try:
            handles.update(zip((spec.key for spec in outside), await self._process.launch(outside)))
        except BaseException:
            await asyncio.shield(self._container.kill(handles.values(), grace=0.0))
            raise
        return [handles[spec.key] for spec in gang]

    def observe(self, handles: Iterable[str]) -> dict[str, Observation]:
        found: dict[str, Observation] = {}
        for launcher, mine in self._split(handles):
            found.update(launcher.observe(mine))
        return found

    async def kill(self, handles: Iterable[str], *, grace: float) -> None:
        shares = self._split(handles)
        await asyncio.gather(*(launcher.kill(mine, grace=grace) for launcher, mine in shares))

    def logs(self, handle: str, stream: Stream, start: int, *, limit: int = 1 << 20) -> bytes:
        return self._process.logs(handle, stream, start, limit=limit)

    def log_path(self, handle: str, stream: Stream) -> Path | None:
        return self._process.log_path(handle, stream)

    def exec_command(self, handle: str, command: Sequence[str], *, tty: bool = False) -> ExecPlan:
        [(launcher, _)] = self._split([handle])
        return launcher.exec_command(handle, command, tty=tty)

    async def forget(self, handles: Iterable[str]) -> None:
        for launcher, mine in self._split(handles):
            await launcher.forget(mine)

    async def close(self) -> None:
        await self._process.close()
        await self._container.close()

    def _split(self, handles: Iterable[str]) -> list[tuple[Launcher, list[str]]]:
        wanted = list(handles)
        inside = [handle for handle in wanted if handle.startswith(self._container.name + ":")]
        outside = [handle for handle in wanted if handle not in set(inside)]
        shares: list[tuple[Launcher, list[str]]] = [(self._container, inside), (self._process, outside)]
        return [(launcher, mine) for launcher, mine in shares if mine]
