"""Files on their way in: written under a temporary name, given their real one only when whole."""

# Descriptors and folder-relative calls, which pathlib has not.
# ruff: noqa: PTH108, PTH112, PTH118, PTH119, PTH120
from __future__ import annotations

import os
import secrets
import stat
import threading
import zlib
from collections.abc import Sequence

from openpaisdk.errors import ConflictError, NotFoundError
from openpaisdk.server.files.digests import show_crc
from openpaisdk.server.files.operations import Files
from openpaisdk.server.files.paths import Place

_COUNT_EVERY = 16 << 20


class NewFile:
    """A file being made. Every call blocks; `commit` or `discard` ends it, and either may be called twice."""

    def __init__(self, files: Files, place: Place, *, overwrite: bool, mode: int = 0o644) -> None:
        self._files = files
        self._place = place
        self._overwrite = overwrite
        self._crc = 0
        self._admitted = 0
        self.size = 0
        require_free(files, place, overwrite)
        files.admit(place, 1)
        self._path = os.path.join(files.area.staging, secrets.token_hex(12))
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)

    def expect(self, size: int) -> None:
        """Refuse at once what cannot fit, where the size is told beforehand."""
        self._files.admit(self._place, size)

    def write(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Take more of the contents."""
        self._crc = _write_all(self._fd, chunks, self._crc)
        self.size += sum(map(len, chunks))
        if self.size - self._admitted > _COUNT_EVERY:
            self._files.admit(self._place, self.size)
            self._admitted = self.size

    def commit(self) -> str:
        """Put the whole file in its place; its CRC-32 is the answer."""
        self._files.admit(self._place, self.size)
        parent = os.path.dirname(self._place.real)
        try:
            self._files.area.make_folders(parent)
        except NotADirectoryError:
            raise ConflictError(f"A part of {self._place.logical} is a file, not a folder.") from None
        self._files.digests.remember(self._fd, {"crc32": show_crc(self._crc)})
        folder = self._files.area.open_folder(parent)
        try:
            name = os.path.basename(self._place.real)
            if self._overwrite:
                os.replace(self._path, name, dst_dir_fd=folder)
            else:
                # A link refuses to replace, where a rename would overwrite a file that came meanwhile.
                os.link(self._path, name, dst_dir_fd=folder)
                os.unlink(self._path)
        except (FileExistsError, IsADirectoryError):
            raise _taken(self._place) from None
        finally:
            os.close(folder)
        self._close()
        self._files.count(self._place, self.size)
        return show_crc(self._crc)

    def discard(self) -> None:
        """Leave no trace."""
        if self._fd >= 0:
            self._close()
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Appending:
    """More contents for a file that is there. What arrived stays when the sender is cut off, as in HDFS."""

    _busy: set[tuple[int, int]] = set()  # noqa: RUF012 - inodes that somebody appends to, in the whole process
    _lock = threading.Lock()

    def __init__(self, files: Files, place: Place, *, position: int = -1) -> None:
        self._files = files
        self._place = place
        self.size = 0
        self._crc: int | None = None
        if not os.path.lexists(place.real):
            raise NotFoundError(f"File does not exist: {place.logical}")
        self._fd = files.area.open_file(place, os.O_RDWR | os.O_APPEND)
        found = os.fstat(self._fd)
        self._key = (found.st_dev, found.st_ino)
        with self._lock:
            free = self._key not in self._busy and stat.S_ISREG(found.st_mode)
            if free:
                self._busy.add(self._key)
        if not free:
            os.close(self._fd)
            raise ConflictError(
                f"{place.logical} is being appended to by another request.", hint="Try again."
            )
        found = os.fstat(self._fd)  # again: who appended before may have added to it until now
        if position not in (-1, found.st_size):
            self.discard()
            raise ConflictError(
                f"{place.logical} has {found.st_size} bytes, not {position}.",
                hint="Look again and go on there.",
            )
        known = files.digests.recall(self._fd).get("crc32")
        self._crc = int(known, 16) if known else None if found.st_size else 0

    def expect(self, size: int) -> None:
        """Refuse at once what cannot fit, where the size is told beforehand."""
        self._files.admit(self._place, size)

    def write(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Take more of the contents."""
        written = sum(map(len, chunks))
        self._files.admit(self._place, written)
        crc, self._crc = self._crc, None  # unknown again should the disk refuse a part of it
        crc_after = _write_all(self._fd, chunks, crc or 0)
        self._crc = None if crc is None else crc_after
        self.size += written
        self._files.count(self._place, written)

    def commit(self) -> str:
        """End it; the CRC-32 of the whole file is the answer where it is known."""
        self.discard()
        return "" if self._crc is None else show_crc(self._crc)

    def discard(self) -> None:
        """End it, keeping what has arrived."""
        if self._fd >= 0:
            if self._crc is not None:
                self._files.digests.remember(self._fd, {"crc32": show_crc(self._crc)})
            os.close(self._fd)
            self._fd = -1
            with self._lock:
                self._busy.discard(self._key)


def _write_all(fd: int, chunks: Sequence[bytes | memoryview], crc: int) -> int:
    for chunk in chunks:
        crc = zlib.crc32(chunk, crc)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]
    return crc


def require_free(files: Files, place: Place, overwrite: bool) -> None:
    """Raise ConflictError when no file may be made there."""
    if place.owner == "/" or place.real == os.path.join(files.area.root, "shared"):
        raise _taken(place)
    if os.path.isdir(place.real):
        raise _taken(place)
    if not overwrite and os.path.lexists(place.real):
        raise _taken(place)


def _taken(place: Place) -> ConflictError:
    return ConflictError(
        f"{place.logical} already exists.",
        hint="Replace it with --overwrite (overwrite=true in a request), or use another name.",
    )
