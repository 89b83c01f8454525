"""Files on their way in: written under a temporary name, given their real one only when whole."""

# Descriptors and folder-relative calls, which pathlib has not.
# ruff: noqa: PTH108, PTH112, PTH118, PTH119, PTH120
from __future__ import annotations

import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Sequence

from openpaisdk.errors import ConflictError, NotFoundError
from openpaisdk.server.files.operations import Files
from openpaisdk.server.files.paths import Place

_COUNT_EVERY = 16 << 20


class NewFile:
    """A file being made. Every call blocks; `commit` or `discard` ends it, and either may be called twice."""

    def __init__(self, files: Files, place: Place, *, overwrite: bool, mode: int = 0o644) -> None:
        self._files = files
        self._place = place
        self._overwrite = overwrite
        self._digest = hashlib.sha256()
        self._admitted = 0
        self.size = 0
        require_free(files, place, overwrite)
        files.admit(place, 1)
        self._path = os.path.join(files.area.staging, secrets.token_hex(12))
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)

    def expect(self, size: int) -> None:
        """Refuse at once what cannot fit, where the size is told beforehand."""
        self._files.admit(self._place, size)

    def write(self, chunks: Sequence[bytes]) -> None:
        """Take more of the contents."""
        self.size += _write_all(self._fd, chunks, self._digest)
        if self.size - self._admitted > _COUNT_EVERY:
            self._files.admit(self._place, self.size)
            self._admitted = self.size

    def commit(self) -> str:
        """Put the whole file in its place; the SHA-256 is the answer."""
        self._files.admit(self._place, self.size)
        parent = os.path.dirname(self._place.real)
        try:
            self._files.area.make_folders(parent)
        except NotADirectoryError:
            raise ConflictError(f"A part of {self._place.logical} is a file, not a folder.") from None
        self._files.digests.remember(self._fd, self._digest)
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
        return self._digest.hexdigest()

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

    def __init__(self, files: Files, place: Place) -> None:
        self._files = files
        self._place = place
        self.size = 0
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
        self._digest = files.digests.recall(self._fd)

    def expect(self, size: int) -> None:
        """Refuse at once what cannot fit, where the size is told beforehand."""
        self._files.admit(self._place, size)

    def write(self, chunks: Sequence[bytes]) -> None:
        """Take more of the contents."""
        self._files.admit(self._place, sum(map(len, chunks)))
        try:
            written = _write_all(self._fd, chunks, self._digest)
        except OSError:
            self._digest = None
            raise
        self.size += written
        self._files.count(self._place, written)

    def commit(self) -> str:
        """End it; the SHA-256 of the whole file is the answer where it is known."""
        digest = self._digest
        self.discard()
        return digest.hexdigest() if digest else ""

    def discard(self) -> None:
        """End it, keeping what has arrived."""
        if self._fd >= 0:
            if self._digest is not None:
                self._files.digests.remember(self._fd, self._digest)
            os.close(self._fd)
            self._fd = -1
            with self._lock:
                self._busy.discard(self._key)


def _write_all(fd: int, chunks: Sequence[bytes], digest: hashlib._Hash | None) -> int:
    total = sum(map(len, chunks))
    if digest is not None:
        for chunk in chunks:
            digest.update(chunk)
    written = os.writev(fd, chunks) if chunks else 0
    if written < total:
        rest = memoryview(b"".join(chunks))
        while written < total:
            written += os.write(fd, rest[written:])
    return total


def require_free(files: Files, place: Place, overwrite: bool) -> None:
    """Raise ConflictError when no file may be made there."""
    if place.owner == "/" or place.real == os.path.join(files.area.root, "shared"):
        raise _taken(place)
    if os.path.isdir(place.real):
        raise _taken(place)
    if not overwrite and os.path.lexists(place.real):
        raise _taken(place)


def _taken(place: Place) -> ConflictError:
    return ConflictError(f"{place.logical} already exists.", hint="Say overwrite=true to replace a file.")
