"""Many small files in one body: for each a head (name length, size), the name, the contents; nothing else.

A plain frame instead of an archive format: it has no links, owners or devices that would have to be refused.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Protocol

from openpaisdk.errors import ConflictError, NotFoundError, OpenPAIError, UsageError
from openpaisdk.server.files.incoming import NewFile
from openpaisdk.server.files.operations import Files
from openpaisdk.server.files.paths import Place
from openpaisdk.server.files.streaming import BLOCK

HEAD = struct.Struct(">IQ")
_LONGEST_NAME = 4096


class Member(Protocol):
    """A file being unpacked: it is written, then committed or discarded."""

    def write(self, chunks: Sequence[bytes | memoryview]) -> None: ...
    def commit(self) -> str: ...
    def discard(self) -> None: ...


class Unframing:
    """Cuts a body into its files as it arrives; `begin(name, size)` says where each goes."""

    def __init__(self, begin: Callable[[str, int], Member]) -> None:
        self._begin = begin
        self._buffer = bytearray()
        self._member: Member | None = None
        self._left = 0
        self._name = ""
        self.files = 0
        self.bytes = 0

    def write(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Take more of the body."""
        for chunk in chunks:
            self._buffer += chunk
        at = 0
        view = memoryview(bytes(self._buffer))
        while True:
            if self._member is None:
                found = self._head(view, at)
                if found is None:
                    break
                name, size, at = found
                self._member, self._left, self._name = self._begin(name, size), size, name
            piece = view[at : at + self._left]
            if piece:
                self._member.write([bytes(piece)])
                at += len(piece)
                self._left -= len(piece)
            if self._left:
                break
            self.committed(self._name, self._member.commit())
            self._member.discard()
            self._member = None
            self.files += 1
        self.bytes += at
        del self._buffer[:at]

    def committed(self, name: str, checksum: str) -> None:
        """Hear of a file that is in its place."""

    def _head(self, view: memoryview, at: int) -> tuple[str, int, int] | None:
        if len(view) - at < HEAD.size:
            return None
        length, size = HEAD.unpack_from(view, at)
        if not 0 < length <= _LONGEST_NAME:
            raise UsageError(f"The pack is damaged: a name of {length:,} bytes.")
        start = at + HEAD.size
        if len(view) - start < length:
            return None
        try:
            name = str(view[start : start + length], "utf-8")
        except UnicodeDecodeError:
            raise UsageError("The pack is damaged: a name is not UTF-8 text.") from None
        return name, size, start + length

    def finish(self) -> None:
        """The body has ended; an unfinished file in it is an error."""
        if self._member is not None or self._buffer:
            raise UsageError("The pack ends in the middle of a file.")

    def discard(self) -> None:
        """Drop a file that was not finished."""
        if self._member is not None:
            self._member.discard()
            self._member = None


class Unpacking(Unframing):
    """A pack that becomes files below a folder."""

    def __init__(self, files: Files, place: Callable[[str], Place], *, overwrite: bool) -> None:
        super().__init__(self._start)
        self._files = files
        self._place = place
        self._overwrite = overwrite
        self.checksums: dict[str, str] = {}

    def committed(self, name: str, checksum: str) -> None:
        """Keep the CRC-32, which the sender compares with its own."""
        self.checksums[name] = checksum

    def _start(self, name: str, size: int) -> NewFile:
        if name.startswith("/"):
            raise UsageError(f"The pack names {name!r}, an absolute path.")
        found = NewFile(self._files, self._place(name), overwrite=self._overwrite)
        try:
            found.expect(size)
        except OpenPAIError:
            found.discard()
            raise
        return found


class Reading:
    """Files of a folder becoming a pack, one block at a time; what is larger than a block is left out."""

    def __init__(self, files: Files, place: Callable[[str], Place], names: Sequence[str]) -> None:
        self._files = files
        self._place = place
        self._names = iter(names)

    def next_block(self) -> bytes:
        """The next megabyte or so; empty at the end."""
        block = bytearray()
        for name in self._names:
            block += self._member(name)
            if len(block) >= BLOCK:
                break
        return bytes(block)

    def _member(self, name: str) -> bytes:
        try:
            fd, size = self._files.open_for_reading(self._place(name))
        except (NotFoundError, UsageError, ConflictError, OSError):
            return b""
        try:
            if size > BLOCK:
                return b""
            found = os.pread(fd, size, 0)
        finally:
            os.close(fd)
        text = name.encode()
        return HEAD.pack(len(text), len(found)) + text + found
