"""Tells when a file has grown: inotify on Linux, one watch however many follow; a slow look elsewhere."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

IN_MODIFY = 0x00000002
IN_IGNORED = 0x00008000
IN_NONBLOCK = os.O_NONBLOCK
IN_CLOEXEC = getattr(os, "O_CLOEXEC", 0o2000000)
HEADER = struct.Struct("iIII")
PAUSE = 0.01  # a task that prints without end wakes us at most a hundred times a second
LOOK_EVERY = 0.2


class Watcher:
    """Calls back, on the event loop, after a file was written to.

    A call means "look again", not "there is more": several writes may give one call. A file that does not
    exist yet is looked for until it does. `inotify=False` forces the fallback.
    """

    def __init__(self, *, inotify: bool = True) -> None:
        self._notify = _Inotify() if inotify and sys.platform == "linux" else None
        if self._notify is not None and self._notify.fd < 0:
            self._notify = None
        self._callbacks: dict[str, set[Callable[[], None]]] = {}
        self._by_watch: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._paused: asyncio.TimerHandle | None = None
        self._reading = False

    def subscribe(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` whenever `path` was written to; the answer ends that."""
        callbacks = self._callbacks.setdefault(path, set())
        callbacks.add(callback)
        if path not in self._watches and path not in self._sizes:
            self._begin(path)

        def unsubscribe() -> None:
            callbacks.discard(callback)
            if not callbacks and self._callbacks.get(path) is callbacks:
                del self._callbacks[path]
                self._end(path)

        return unsubscribe

    def _begin(self, path: str) -> None:
        if self._notify is not None:
            watch = self._notify.add(path)
            if watch >= 0:
                self._watches[path] = watch
                self._by_watch[watch] = path
                self._read_on()
                return
        self._sizes[path] = _size(path)
        self._look_later()

    def _end(self, path: str) -> None:
        self._sizes.pop(path, None)
        watch = self._watches.pop(path, None)
        if watch is not None and self._notify is not None:
            self._by_watch.pop(watch, None)
            self._notify.remove(watch)
        if not self._callbacks:
            self._rest()

    def _read_on(self) -> None:
        self._paused = None
        if self._notify is not None and not self._reading and self._watches:
            asyncio.get_running_loop().add_reader(self._notify.fd, self._read)
            self._reading = True

    def _read(self) -> None:
        if self._notify is None:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._notify.fd)
        self._reading = False
        self._paused = loop.call_later(PAUSE, self._read_on)
        for path in {self._by_watch[watch] for watch in self._notify.read() if watch in self._by_watch}:
            self._call(path)

    def _call(self, path: str) -> None:
        for callback in tuple(self._callbacks.get(path, ())):
            callback()

    def _look_later(self) -> None:
        if self._timer is None and self._sizes:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)

    def _look(self) -> None:
        self._timer = None
        for path, before in list(self._sizes.items()):
            size = _size(path)
            if size == before:
                continue
            if before < 0 and self._notify is not None:
                del self._sizes[path]
                self._begin(path)
            else:
                self._sizes[path] = size
            self._call(path)
        self._look_later()

    def _rest(self) -> None:
        for timer in (self._timer, self._paused):
            if timer is not None:
                timer.cancel()
        self._timer = self._paused = None
        if self._reading and self._notify is not None:
            asyncio.get_running_loop().remove_reader(self._notify.fd)
        self._reading = False

    def close(self) -> None:
        """Let go of the descriptor; nothing is called back after this."""
        self._callbacks.clear()
        self._sizes.clear()
        self._rest()
        if self._notify is not None:
            self._notify.close()
            self._notify = None


class _Inotify:
    """The three calls of inotify(7)."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = -1
        if hasattr(self._libc, "inotify_init1"):
            self.fd = self._libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)

    def add(self, path: str) -> int:
        """The watch of this file, or -1 where there is no file (or no watch left)."""
        return int(self._libc.inotify_add_watch(self.fd, os.fsencode(path), IN_MODIFY))

    def remove(self, watch: int) -> None:
        self._libc.inotify_rm_watch(self.fd, watch)

    def read(self) -> list[int]:
        """The watches that something happened to."""
        try:
            data = os.read(self.fd, 65536)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EINTR):
                return []
            raise
        found = []
        at = 0
        while at + HEADER.size <= len(data):
            watch, mask, _, length = HEADER.unpack_from(data, at)
            at += HEADER.size + length
            if not mask & IN_IGNORED:
                found.append(watch)
        return found

    def close(self) -> None:
        os.close(self.fd)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return -1
