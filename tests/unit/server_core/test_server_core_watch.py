"""Being told that a file has grown, with inotify and without."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from openpaisdk.server.watch import Watcher


@pytest.fixture(params=[True, False], ids=["inotify", "looking"])
def inotify(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_every_follower_is_told(tmp_path: Path, inotify: bool) -> None:
    path = tmp_path / "log"
    path.touch()

    async def act() -> None:
        watcher = Watcher(inotify=inotify)
        told = [asyncio.Event() for _ in range(50)]
        ends = [watcher.subscribe(str(path), event.set) for event in told]
        for number in range(3):
            with path.open("a") as log:
                log.write(f"{number}\n")
            await asyncio.wait_for(asyncio.gather(*(event.wait() for event in told)), 5)
            for event in told:
                event.clear()
        if inotify:
            assert len(watcher._watches) == 1
        for end in ends:
            end()
        assert not watcher._callbacks and not watcher._watches and not watcher._sizes
        assert watcher._timer is None and not watcher._reading
        watcher.close()

    asyncio.run(act())


def test_a_file_that_is_not_there_yet(tmp_path: Path, inotify: bool) -> None:
    path = tmp_path / "log"

    async def act() -> None:
        watcher = Watcher(inotify=inotify)
        told = asyncio.Event()
        end = watcher.subscribe(str(path), told.set)
        path.write_text("now\n")
        await asyncio.wait_for(told.wait(), 5)
        told.clear()
        with path.open("a") as log:
            log.write("more\n")
        await asyncio.wait_for(told.wait(), 5)
        end()
        watcher.close()

    asyncio.run(act())


def test_a_watcher_at_rest_has_nothing_to_do(tmp_path: Path) -> None:
    async def act() -> None:
        watcher = Watcher()
        watcher.subscribe(str(tmp_path / "a"), lambda: None)()
        assert watcher._timer is None and watcher._paused is None
        watcher.close()
        watcher.close()

    asyncio.run(act())
