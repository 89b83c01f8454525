"""How much a user may store: counted from the disk now and then, and by what is written in between."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from openpaisdk.errors import QuotaError

_RECOUNT_SECONDS = 60.0


def folder_usage(path: str) -> tuple[int, int, int]:
    """Bytes, files and folders below a folder, links not followed."""
    total = files = folders = 0
    pending = [path]
    while pending:
        try:
            found = os.scandir(pending.pop())
        except OSError:
            continue
        folders += 1
        with found:
            for entry in found:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        files += 1
                        total += entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    return total, files, folders


class Quota:
    """A limit in bytes for each home; 0 is none. Tasks write past it, so the disk is counted each minute."""

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._counted: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def used(self, home: str) -> int:
        """Bytes in a home, at most a minute old."""
        at, size = self._counted.get(home, (float("-inf"), 0))
        if self._clock() - at > _RECOUNT_SECONDS:
            size = folder_usage(home)[0]
            with self._lock:
                self._counted[home] = (self._clock(), size)
        return size

    def admit(self, home: str, size: int) -> None:
        """Raise QuotaError when `size` more bytes would not fit."""
        if not self.limit:
            return
        used = self.used(home)
        if used + size > self.limit:
            raise QuotaError(
                f"{size:,} bytes more do not fit: {used:,} of {self.limit:,} bytes are used.",
                hint="Delete what is no longer needed: opai storage delete PATH",
            )

    def add(self, home: str, size: int) -> None:
        """Count what was written (or, negative, deleted) since the last look at the disk."""
        if not self.limit:
            return
        with self._lock:
            at, used = self._counted.get(home, (float("-inf"), 0))
            self._counted[home] = (at, max(0, used + size))
