"""Reading the logs of tasks: pieces of text that end between characters, and where the last lines begin."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

PIECE = 64 * 1024


def open_log(path: Path) -> int | None:
    """A descriptor of a plain file; nothing that a task may have put in its place is followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def size_of(fd: int) -> int:
    return os.fstat(fd).st_size


def size_at(path: Path) -> int | None:
    """The size of a plain file, None where there is none."""
    fd = open_log(path)
    if fd is None:
        return None
    try:
        return size_of(fd)
    finally:
        os.close(fd)


class Part(NamedTuple):
    """Bytes of a file from `start` up to `end`."""

    path: Path
    start: int
    end: int


def pieces(part: Part, most: int) -> Generator[bytes, None, None]:
    """The bytes of a part, at most so many at a time; fewer than there should be of a file cut short."""
    fd = open_log(part.path)
    if fd is None:
        return
    try:
        at = part.start
        while data := os.pread(fd, min(most, part.end - at), at):
            at += len(data)
            yield data
    finally:
        os.close(fd)


def whole_characters(data: bytes) -> int:
    """How many bytes of `data` can be shown now: a character whose rest is still to come waits for it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return len(data)
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needed > back else len(data)
    return len(data)


def start_of_last_lines(fd: int, lines: int) -> int:
    """The offset from which `lines` lines are left (a last one without a line break counts)."""
    end = size_of(fd)
    if lines <= 0:
        return end
    at = end
    # The break that ends the last line separates it from nothing.
    wanted = lines + 1 if end and os.pread(fd, 1, end - 1) == b"\n" else lines
    while at > 0:
        size = min(PIECE, at)
        data = os.pread(fd, size, at - size)
        place = len(data)
        while (place := data.rfind(b"\n", 0, place)) >= 0:
            wanted -= 1
            if wanted == 0:
                return at - size + place + 1
        at -= size
    return 0


class Tail:
    """One log that is being followed, from a byte offset on."""

    __slots__ = ("_fd", "offset", "path")

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self._fd: int | None = None

    def seek_lines(self, lines: int) -> None:
        """Begin with the last lines instead."""
        fd = self._open()
        if fd is not None:
            self.offset = start_of_last_lines(fd, lines)

    def read(self, *, to_the_end: bool = False) -> str:
        """The next piece, empty where there is none; at the end half a character is shown as it is."""
        fd = self._open()
        if fd is None:
            return ""
        data = os.pread(fd, PIECE, self.offset)
        if not data and size_of(fd) < self.offset:
            self.offset = 0  # the task truncated its own log
            return ""
        usable = len(data) if to_the_end and len(data) < PIECE else whole_characters(data)
        self.offset += usable
        return data[:usable].decode(errors="replace")

    def _open(self) -> int | None:
        if self._fd is None:
            self._fd = open_log(self.path)
        return self._fd

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
