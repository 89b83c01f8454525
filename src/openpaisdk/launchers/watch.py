"""Learning that a process has ended: by pidfd where the system has it, by asking now and then elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

POLL_SECONDS = 0.2


class ExitWatch:
    """Calls back once per watched process, on the event loop. It never reaps: `reap` does, when the
    caller has finished with whatever needs the process id to stay taken."""

    def __init__(self, *, use_pidfd: bool = hasattr(os, "pidfd_open")) -> None:
        self._use_pidfd = use_pidfd
        self._descriptors: dict[int, int] = {}
        self._polled: dict[int, Callable[[], None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, pid: int, ended: Callable[[], None]) -> None:
        """Call `ended` when `pid` has ended; soon when it already has."""
        loop = asyncio.get_running_loop()
        descriptor = -1
        if self._use_pidfd:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                loop.call_soon(ended)
                return
            except OSError:
                # Out of descriptors, or a kernel without them: this one is asked about instead.
                descriptor = -1
        if descriptor >= 0:
            self._descriptors[pid] = descriptor
            loop.add_reader(descriptor, self._readable, pid, ended)
        else:
            self._polled[pid] = ended
            if self._timer is None:
                self._timer = loop.call_later(POLL_SECONDS, self._poll)

    def _readable(self, pid: int, ended: Callable[[], None]) -> None:
        self._drop(pid)
        ended()

    def _drop(self, pid: int) -> None:
        descriptor = self._descriptors.pop(pid, None)
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)

    def _poll(self) -> None:
        self._timer = None
        for pid in [pid for pid in self._polled if not is_running(pid)]:
            self._polled.pop(pid)()
        if self._polled and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll)

    def close(self) -> None:
        """Stop watching; the processes go on."""
        for pid in list(self._descriptors):
            self._drop(pid)
        self._polled.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def is_running(pid: int) -> bool:
    """Whether `pid` is a process that has not ended; one that waits to be reaped has."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def reap(pid: int) -> int | None:
    """The exit code, in the shell's convention, of an own child that has ended; None for others."""
    with suppress(ChildProcessError):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
    return None


def start_ticks(pid: int) -> int | None:
    """When `pid` started in ticks since boot; None when it has ended, 0 where there is no /proc."""
    if not Path("/proc/self/stat").exists():
        return 0 if is_running(pid) else None
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def boot_id() -> str:
    """A text that changes when the machine restarts; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
