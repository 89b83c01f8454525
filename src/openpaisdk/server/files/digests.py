"""SHA-256 of stored files: computed while they arrive, remembered while they stay as they are."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash

_KEPT = 4096
_BLOCK = 1 << 20


class Digests:
    """Running digests by inode; one whose size or time no longer fits the file counts for nothing."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], tuple[int, int, _Hash]] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, fd: int, digest: _Hash) -> None:
        """Keep the digest of a file whose last byte has just been written."""
        found = os.fstat(fd)
        with self._lock:
            self._known[found.st_dev, found.st_ino] = (found.st_size, found.st_mtime_ns, digest)
            self._known.move_to_end((found.st_dev, found.st_ino))
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def recall(self, fd: int) -> _Hash | None:
        """The digest of an open file where it is known, free to be carried on with."""
        found = os.fstat(fd)
        with self._lock:
            size, changed, digest = self._known.get((found.st_dev, found.st_ino), (-1, 0, None))
        if digest is None or (size, changed) != (found.st_size, found.st_mtime_ns):
            return None
        return digest.copy()

    def compute(self, fd: int) -> _Hash:
        """The digest of an open file, read through only where it is not known."""
        digest = self.recall(fd)
        if digest is None:
            digest = hashlib.sha256()
            offset = 0
            while block := os.pread(fd, _BLOCK, offset):
                digest.update(block)
                offset += len(block)
            self.remember(fd, digest.copy())
        return digest
