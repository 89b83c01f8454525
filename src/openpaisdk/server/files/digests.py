"""Checksums of stored files, remembered while the files stay as they are.

CRC-32 is taken while contents arrive, at a third of the cost of SHA-256, which is computed when asked for.
"""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections import OrderedDict

from openpaisdk.errors import UsageError

_KEPT = 4096
_BLOCK = 1 << 20


class Digests:
    """Checksums by inode; those taken when size or time were others count for nothing."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], tuple[int, int, dict[str, str]]] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, fd: int, found: dict[str, str]) -> None:
        """Keep the checksums of an open file as it is now."""
        status = os.fstat(fd)
        with self._lock:
            key = (status.st_dev, status.st_ino)
            self._known[key] = (status.st_size, status.st_mtime_ns, found)
            self._known.move_to_end(key)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def recall(self, fd: int) -> dict[str, str]:
        """What is known of an open file, by kind."""
        status = os.fstat(fd)
        with self._lock:
            size, changed, found = self._known.get((status.st_dev, status.st_ino), (-1, 0, {}))
        return dict(found) if (size, changed) == (status.st_size, status.st_mtime_ns) else {}

    def compute(self, fd: int, kind: str) -> str:
        """A checksum of an open file, read through only where it is not known."""
        found = self.recall(fd)
        if kind not in found:
            found[kind] = _read_through(fd, kind)
            self.remember(fd, found)
        return found[kind]


def _read_through(fd: int, kind: str) -> str:
    if kind not in ("sha256", "crc32"):
        raise UsageError(f"There is no checksum {kind!r}.", hint="Ask for sha256 or crc32.")
    digest, crc, offset = hashlib.sha256(), 0, 0
    while block := os.pread(fd, _BLOCK, offset):
        if kind == "crc32":
            crc = zlib.crc32(block, crc)
        else:
            digest.update(block)
        offset += len(block)
    return digest.hexdigest() if kind == "sha256" else show_crc(crc)


def show_crc(crc: int) -> str:
    """A CRC-32 as text."""
    return f"{crc:08x}"
