"""What uploads and downloads share: progress, lists of files on both sides, and doing many things at once."""

# Thousands of files: pathlib costs more than the work itself.
# ruff: noqa: PTH100, PTH113

from __future__ import annotations

import os
from collections import deque
from threading import Lock
from time import monotonic

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.storage.contract import PART, Entry, FileSource, readable_name
from openpaisdk.storage.ignore import Ignoring, is_environment
from openpaisdk.storage.local import LocalStorage, translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from queue import SimpleQueue
    from threading import Thread
    from typing import Any

    from openpaisdk.storage.contract import Storage

    Job = Callable[[], None]

WORKERS = 4
SMALL = 256 << 10
_PACK_BYTES = 4 << 20
_PACK_FILES = 500
_LAST_WORDS_SECONDS = 1.0


class Stopped(BaseException):
    """The transfer was stopped; ends a worker in the middle of a file, and no one else sees it."""


class Progress:
    """What was done of what is to do; `show` hears of every step and decides how often to draw."""

    def __init__(self, show: Callable[[Progress], Any] | None = None) -> None:
        self._show = show
        self._lock = Lock()
        self._stopped = False
        self.files = self.bytes = self.done_files = self.done_bytes = self.skipped = 0

    def add(self, size: int, files: int = 0, *, skipped: bool = False) -> None:
        """Count bytes and files that are done, or that were there already."""
        self.go_on()
        with self._lock:
            self.done_bytes += size
            self.done_files += files
            self.skipped += files if skipped else 0
        if self._show is not None:
            self._show(self)

    def stop(self) -> None:
        """End the transfer: whoever works on it ends at the next block."""
        self._stopped = True

    def go_on(self) -> None:
        """Nothing while the transfer is wanted, `Stopped` afterwards."""
        if self._stopped:
            raise Stopped

    def summary(self) -> dict[str, int]:
        """The outcome as commands return it."""
        return {
            "files": self.done_files,
            "bytes": self.done_bytes,
            "skipped": self.skipped,
            "copied": self.done_files - self.skipped,
        }


def safe_name(name: str) -> str:
    """A name that a storage gave, when it can only mean a file in the folder at hand."""
    if (
        name in ("", ".", "..")
        or "/" in name
        or "\0" in name
        or (os.name == "nt" and set(name) & set('\\:*?"<>|'))
    ):
        raise UsageError(f"the storage names a file {name!r}, which cannot be written here")
    return name


def local_files(folder: str, name: str, rules: Ignoring | None) -> Iterator[tuple[str, FileSource]]:
    """Files below a local folder with their names relative to it, without what the rules leave out."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise translate(error, folder) from error
    for entry in entries:
        inner = f"{name}/{entry.name}" if name else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if rules is not None and rules.leaves_out(entry.name, is_folder):
            continue
        if is_folder or entry.is_file():
            readable_name(entry.name, entry.path)
        if is_folder:
            if rules is None or not is_environment(entry.path):
                below = rules.below(entry.path, entry.name) if rules is not None else None
                yield from local_files(entry.path, inner, below)
        elif entry.is_file():
            yield inner, FileSource(entry.path)


def remote_files(store: Storage, path: str, name: str = "") -> Iterator[tuple[str, Entry]]:
    """Files below a folder of a storage with their names relative to it; none where there is no folder."""
    try:
        found = store.list(path)
    except NotFoundError:
        return
    for entry in found:
        if entry.name.endswith(PART):
            continue
        inner = f"{name}/{safe_name(entry.name)}" if name else safe_name(entry.name)
        if entry.is_folder:
            yield from remote_files(store, f"{path.rstrip('/')}/{entry.name}", inner)
        elif entry.kind == "file":
            yield inner, entry


def same_as_local(store: Storage, path: str, source: FileSource, there: Entry) -> bool:
    """Whether a stored file equals a local one: by size and time, otherwise by checksum."""
    if there.kind != "file" or there.size != source.size:
        return False
    # Some keep milliseconds, some whole seconds.
    if abs(there.modified - source.modified) < 0.002 or there.modified == int(source.modified):
        return True
    stored = store.checksum(path)
    if stored is None:
        return there.modified >= source.modified
    return stored == LocalStorage("/").checksum(os.path.abspath(source.path))


def same_as_remote(store: Storage, path: str, there: Entry, target: str) -> bool:
    """Whether a file is here already and equal."""
    if not os.path.isfile(target):
        return False
    here = FileSource(target)
    return same_as_local(store, path, here, there) if here.size == there.size else False


def is_folder_there(store: Storage, path: str) -> bool:
    """Whether the storage has a folder of that name."""
    found = stat_or_none(store, path)
    return found is not None and found.is_folder


def stat_or_none(store: Storage, path: str) -> Entry | None:
    """One file or folder, None where there is none."""
    try:
        return store.stat(path)
    except NotFoundError:
        return None


def grouped(items: list[Any], size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Small files in groups that travel together."""
    group: list[Any] = []
    total = 0
    for item in items:
        group.append(item)
        total += size(item)
        if total >= _PACK_BYTES or len(group) >= _PACK_FILES:
            yield group
            group, total = [], 0
    if group:
        yield group


def run_all(jobs: Iterable[Job], workers: int, told: Progress) -> None:
    """Do all jobs; the first failure or Ctrl-C ends those under way too, within about a second."""
    todo = deque(jobs)
    if workers < 2 or len(todo) < 2:
        for job in todo:
            job()
        return
    from queue import SimpleQueue
    from threading import Thread

    ended: SimpleQueue[BaseException | None] = SimpleQueue()
    # Daemons: one that waits for a silent server must not keep the program.
    threads = [
        Thread(target=_work, args=(todo, told, ended), daemon=True) for _ in range(min(workers, len(todo)))
    ]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            failed = ended.get()
            if failed is not None:
                raise failed
    except BaseException:
        told.stop()
        _wait_for_ends([thread for thread in threads if thread.ident is not None])
        raise


def _work(todo: deque[Job], told: Progress, ended: SimpleQueue[BaseException | None]) -> None:
    try:
        while (job := _next(todo)) is not None:
            told.go_on()
            job()
    except Stopped:
        ended.put(None)
    except BaseException as error:  # noqa: BLE001 - raised again where the jobs were given
        ended.put(error)
    else:
        ended.put(None)


def _next(todo: deque[Job]) -> Job | None:
    try:
        return todo.popleft()
    except IndexError:
        return None


def _wait_for_ends(threads: list[Thread]) -> None:
    latest = monotonic() + _LAST_WORDS_SECONDS
    for thread in threads:
        thread.join(max(0.0, latest - monotonic()))
