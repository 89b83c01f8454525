"""What a storage is: six operations on paths, and what tree transfers may ask beyond them.

Paths are text with `/`. Every call blocks. A file that is being written has its name only when it is whole.
"""

from __future__ import annotations

import os
import stat

from openpaisdk.errors import NotFoundError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Storage(Protocol):
        """Where files are kept; failures are the errors of this package."""

        address: str

        def list(self, path: str) -> list[Entry]:
            """What a folder holds, by name; a file is listed as itself. Repeatable."""

        def stat(self, path: str) -> Entry:
            """One file or folder. Repeatable."""

        def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
            """Contents from an offset on, block by block. Repeatable."""

        def write(self, path: str, source: Source, *, overwrite: bool = False) -> None:
            """Make a file with the folders above it. Repeated after a failure, it goes on where it was."""

        def mkdir(self, path: str) -> None:
            """Make a folder and those above it; already there is fine."""

        def remove(self, path: str, *, recursive: bool = False) -> bool:
            """Delete; whether there was something to delete."""

        def checksum(self, path: str, kind: str = "sha256") -> str | None:
            """SHA-256 or CRC-32 (`crc32`) of a file where the storage computes it itself, otherwise None."""

        def set_modified(self, path: str, modified: float) -> bool:
            """Set the time of the last change; whether the storage can."""


PART = ".opai-part"
BLOCK = 256 << 10


class Entry:
    """A file, a folder, or a link that leads nowhere we may go."""

    __slots__ = ("kind", "modified", "name", "size")

    def __init__(self, name: str, kind: str, size: int = 0, modified: float = 0.0) -> None:
        self.name = name
        self.kind = kind
        self.size = size
        self.modified = modified

    @property
    def is_folder(self) -> bool:
        """Whether it can be listed."""
        return self.kind == "folder"

    def as_dict(self) -> dict[str, object]:
        """The entry as commands return it."""
        return {
            "name": self.name,
            "type": self.kind,
            "size": self.size,
            "modified": int(self.modified * 1000),
        }

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, {self.kind!r}, {self.size}, {self.modified})"


class Source:
    """Contents to be written: how many bytes, what they are known by, and how to read them from an offset."""

    size: int
    key: str

    def blocks(self, offset: int, end: int) -> Iterator[bytes]:
        """The bytes from `offset` to `end`."""
        raise NotImplementedError


class BytesSource(Source):
    """Contents that are in memory."""

    def __init__(self, contents: bytes) -> None:
        from hashlib import sha256

        self.size = len(contents)
        self.key = sha256(contents).hexdigest()[:16]
        self._contents = contents

    def blocks(self, offset: int, end: int) -> Iterator[bytes]:
        """The bytes from `offset` to `end`."""
        for at in range(offset, end, BLOCK):
            yield self._contents[at : min(at + BLOCK, end)]


class FileSource(Source):
    """A local file; changed in the meantime, it has another key, and nothing of the old one is continued."""

    def __init__(self, path: str) -> None:
        from hashlib import sha256

        self.path = path
        try:
            found = os.stat(path)  # noqa: PTH116 - one call of many
        except FileNotFoundError:
            raise NotFoundError(
                f"there is no file {path}", hint="check the name; a link that leads nowhere cannot be sent"
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(
                f"{path} is {_kind_words(found.st_mode)}, not a file",
                hint="write what it gives to a file, and send that",
            )
        self.size = found.st_size
        self.modified = found.st_mtime
        self.key = sha256(f"{found.st_size} {found.st_mtime_ns} {found.st_ino}".encode()).hexdigest()[:16]

    def blocks(self, offset: int, end: int) -> Iterator[bytes]:
        """The bytes from `offset` to `end`; a file that became shorter is an error."""
        try:
            with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123 - one call of many
                file.seek(offset)
                while offset < end:
                    block = file.read(min(BLOCK, end - offset))
                    if not block:
                        raise UsageError(
                            f"{self.path} became shorter while it was sent", hint="send it again"
                        )
                    offset += len(block)
                    yield block
        except PermissionError:
            raise UsageError(f"{self.path} cannot be read: permission denied") from None


def _kind_words(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def readable_name(name: str, path: str) -> str:
    """A name that storages can keep, which is text in UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{path!r}: the name is not in UTF-8, which storages need", hint="rename it"
        ) from None
    return name


def same_start(stored: Iterator[bytes], source: Source, size: int) -> bool:
    """Whether what is stored of a part equals the first `size` bytes of the source."""
    from hashlib import sha256

    ours, theirs = sha256(), sha256()
    for block in source.blocks(0, size):
        ours.update(block)
    for block in stored:
        theirs.update(block)
    return ours.digest() == theirs.digest()


class Crc:
    """A running CRC-32, which is enough to notice a damaged transfer and costs a third of SHA-256."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def update(self, block: bytes) -> None:
        """Take in more contents."""
        from zlib import crc32

        self.value = crc32(block, self.value)

    def hexdigest(self) -> str:
        """The checksum as text."""
        return f"{self.value:08x}"


def part_name(path: str, key: str) -> str:
    """The name that a file has while it is not whole."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{_part_stem(name)}{key}{PART}"


def is_part_of(name: str, part: str) -> bool:
    """Whether a name is that of a part of the file."""
    stem = _part_stem(name)
    return part.startswith(stem) and part.endswith(PART) and "." not in part[len(stem) : -len(PART)]


def _part_stem(name: str) -> str:
    # Names have at most 255 bytes: a long one is cut, and the key still tells it apart.
    short = name.encode("utf-8", "surrogateescape")[:180].decode("utf-8", "ignore")
    return f".{short}."
