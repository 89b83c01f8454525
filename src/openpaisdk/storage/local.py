"""A local folder as a storage."""

# Descriptors, exclusive links and whole trees: calls that pathlib has not, or has slower.
# ruff: noqa: PTH100, PTH103, PTH105, PTH106, PTH108, PTH110, PTH111, PTH112, PTH116, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import errno
import os
import stat

from openpaisdk.errors import AccessError, ConflictError, NotFoundError, OpenPAIError, QuotaError, UsageError
from openpaisdk.storage.contract import BLOCK, Crc, Entry, part_name, same_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from openpaisdk.storage.contract import Source


class LocalStorage:
    """Files of this machine; paths are relative to `root` or absolute."""

    def __init__(self, root: str = ".") -> None:
        self.root = os.path.abspath(os.path.expanduser(root))
        self.address = f"file://{self.root}"

    def _path(self, path: str) -> str:
        return os.path.join(self.root, os.path.expanduser(path))

    def list(self, path: str) -> list[Entry]:
        """What a folder holds."""
        real = self._path(path)
        try:
            if not os.path.isdir(real):
                return [self.stat(path)]
            with os.scandir(real) as found:
                return sorted((_entry(item.name, item.path) for item in found), key=lambda entry: entry.name)
        except OSError as error:
            raise translate(error, path) from error

    def stat(self, path: str) -> Entry:
        """One file or folder."""
        real = self._path(path)
        try:
            os.stat(real)
        except OSError as error:
            raise translate(error, path) from error
        return _entry(os.path.basename(real.rstrip("/")), real)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Contents from an offset on."""
        try:
            file = open(self._path(path), "rb")  # noqa: SIM115 - closed below, after the last block
        except OSError as error:
            raise translate(error, path) from error
        return _blocks(file, offset, length)

    def write(self, path: str, source: Source, *, overwrite: bool = False) -> None:
        """Make a file: a part grows beside it and takes its name when whole."""
        real = self._path(path)
        part = part_name(real, source.key)
        try:
            if os.path.isdir(real) or (os.path.lexists(real) and not overwrite):
                raise taken(path)
            make_folder(os.path.dirname(real))
            self._fill(part, source)
            if overwrite:
                os.replace(part, real)
            else:
                publish_new(part, real)
        except FileExistsError:
            raise taken(path) from None
        except OSError as error:
            raise translate(error, path) from error

    def _fill(self, part: str, source: Source) -> None:
        have = os.path.getsize(part) if os.path.exists(part) else 0  # noqa: PTH202
        if have > source.size or (have and not same_start(self.read(part), source, have)):
            os.unlink(part)
            have = 0
        with open(part, "ab") as file:
            for block in source.blocks(have, source.size):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it."""
        try:
            os.makedirs(self._path(path), exist_ok=True)
        except FileExistsError:
            raise taken(path) from None
        except OSError as error:
            raise translate(error, path) from error

    def remove(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file or a folder."""
        real = self._path(path)
        try:
            if not os.path.lexists(real):
                return False
            if not stat.S_ISDIR(os.lstat(real).st_mode):
                os.unlink(real)
            elif recursive:
                import shutil

                shutil.rmtree(real)
            else:
                os.rmdir(real)
        except OSError as error:
            raise translate(error, path) from error
        return True

    def checksum(self, path: str, kind: str = "sha256") -> str | None:
        """SHA-256 or CRC-32 of a file."""
        from hashlib import sha256

        digest = Crc() if kind == "crc32" else sha256()
        for block in self.read(path):
            digest.update(block)
        return digest.hexdigest()

    def set_modified(self, path: str, modified: float) -> bool:
        """Set the time of the last change."""
        os.utime(self._path(path), (modified, modified))
        return True


def publish_new(part: str, real: str) -> None:
    """Give a part its name unless something has it already; FileExistsError then."""
    try:
        os.link(part, real)
    except FileExistsError:
        raise
    except OSError:
        # No hard links here (some network folders, Windows without rights): a rename that looks first.
        if os.path.lexists(real):
            raise FileExistsError(errno.EEXIST, "exists", real) from None
        os.rename(part, real)  # noqa: PTH104
        return
    os.unlink(part)


def taken(path: str) -> ConflictError:
    """The name is in use."""
    return ConflictError(f"{path} already exists", hint="replace it with --overwrite, or use another name")


def make_folder(path: str) -> None:
    """Make a folder of this machine and those above it; already there is fine."""
    try:
        os.makedirs(path or ".", exist_ok=True)
    except FileExistsError:
        raise not_a_folder(path) from None


def not_a_folder(path: str) -> ConflictError:
    """A file has the name that a folder needs."""
    return ConflictError(f"{path} is a file, not a folder", hint="name a folder, or move the file away")


def translate(error: OSError, path: str) -> OpenPAIError:
    """An error of the operating system in our words."""
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"there is no {path}")
    if isinstance(error, NotADirectoryError):
        return ConflictError(
            f"{path}: a part of the path is a file, not a folder",
            hint="name a folder, or move the file away",
        )
    if isinstance(error, PermissionError):
        return AccessError(f"{path}: permission denied")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return QuotaError(f"{path}: the disk is full", hint="make room; the same command again goes on")
    if isinstance(error, FileExistsError):
        return taken(path)
    if error.errno == errno.ENOTEMPTY:
        return ConflictError(f"{path} is not empty", hint="delete all of it with --recursive")
    return UsageError(f"{path}: {error.strerror or error}")


def _entry(name: str, path: str) -> Entry:
    try:
        found = os.stat(path)
    except OSError:
        return Entry(name, "link")
    if stat.S_ISDIR(found.st_mode):
        return Entry(name, "folder", 0, found.st_mtime)
    return Entry(name, "file" if stat.S_ISREG(found.st_mode) else "link", found.st_size, found.st_mtime)


def _blocks(file: object, offset: int, length: int | None) -> Iterator[bytes]:
    from typing import BinaryIO, cast

    opened = cast(BinaryIO, file)
    with opened:
        opened.seek(offset)
        left = length
        while left is None or left > 0:
            block = opened.read(BLOCK if left is None else min(BLOCK, left))
            if not block:
                return
            if left is not None:
                left -= len(block)
            yield block
