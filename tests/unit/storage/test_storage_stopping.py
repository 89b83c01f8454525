"""Ctrl-C and the first failure end a folder transfer at once, in the middle of its files."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openpaisdk.errors import ServerError
from openpaisdk.storage import Entry, LocalStorage, Progress, download, upload
from openpaisdk.storage.contract import Source
from openpaisdk.storage.trees import Stopped

PATIENCE = 8.0


class Endless(LocalStorage):
    """Files that have no end; `act` is called in the middle of the last one."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__("/")
        self.act = act
        self.reading = 0
        self.lock = threading.Lock()

    def list(self, path: str) -> list[Entry]:
        return [Entry(f"f{number}", "file", 2 << 30, 1.0) for number in range(6)]

    def stat(self, path: str) -> Entry:
        return Entry("folder", "folder")

    def _count(self, step: int) -> int:
        with self.lock:
            self.reading += step
            return self.reading

    def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        latest = time.monotonic() + PATIENCE
        last = self._count(1) == 4
        try:
            for number in range(1 << 40):
                if time.monotonic() > latest:
                    return
                if last and number == 5:
                    self.act()
                yield b"x"
        finally:
            self._count(-1)

    def write(self, path: str, source: Source, *, overwrite: bool = False) -> None:
        blocks = source.blocks(0, source.size)
        for taken, _ in zip(self.read(path), blocks):
            assert taken


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fail() -> None:
    raise ServerError("the disk broke")


@pytest.mark.parametrize(("act", "kind"), [(interrupt, KeyboardInterrupt), (fail, ServerError)])
def test_a_download_stops_in_the_middle_of_its_files(
    tmp_path: Path, act: Callable[[], None], kind: type[BaseException]
) -> None:
    store = Endless(act)
    begun = time.monotonic()
    with pytest.raises(kind):
        download(store, "/folder", str(tmp_path / "here"))
    assert time.monotonic() - begun < PATIENCE / 2
    assert store.reading == 0
    parts = list((tmp_path / "here").iterdir())
    assert parts and all(part.name.endswith(".opai-part") for part in parts)


@pytest.mark.parametrize(("act", "kind"), [(interrupt, KeyboardInterrupt), (fail, ServerError)])
def test_an_upload_stops_in_the_middle_of_its_files(
    tmp_path: Path, act: Callable[[], None], kind: type[BaseException]
) -> None:
    for number in range(6):
        with (tmp_path / f"f{number}").open("wb") as file:
            file.truncate(64 << 30)
    store = Endless(act)
    store.list = lambda path: []  # type: ignore[method-assign]
    store.mkdir = lambda path: None  # type: ignore[method-assign]
    begun = time.monotonic()
    with pytest.raises(kind):
        upload(store, str(tmp_path), "/folder")
    assert time.monotonic() - begun < PATIENCE / 2
    assert store.reading == 0


def test_a_worker_that_hangs_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    """A silent server: nothing reads the flag, and the program ends all the same."""
    silence = threading.Event()
    store = Endless(fail)
    whole = store.read

    def read(path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        if path.endswith("f0"):
            silence.wait(PATIENCE)
        yield from whole(path, offset, length)

    store.read = read  # type: ignore[method-assign]
    store.list = lambda path: [Entry(f"f{n}", "file", 9, 1.0) for n in range(9)]  # type: ignore[method-assign]
    store._count(1)
    begun = time.monotonic()
    with pytest.raises(ServerError, match="the disk broke"):
        download(store, "/folder", str(tmp_path / "here"))
    assert time.monotonic() - begun < PATIENCE / 2
    silence.set()


def test_nothing_is_shown_after_the_stop() -> None:
    shown: list[int] = []
    progress = Progress(lambda told: shown.append(told.done_bytes))
    progress.add(1)
    progress.stop()
    with pytest.raises(Stopped):
        progress.add(1)
    assert shown == [1]
