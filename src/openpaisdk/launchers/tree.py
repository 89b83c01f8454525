"""All processes of a task, also those that left its process group, and signals to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

import psutil

from openpaisdk.launchers.wrapper import MARKER


def find_by_marker(folders: Iterable[str], *, sessions: dict[int, str]) -> dict[str, set[int]]:
    """The processes of each task folder in one pass over the machine: those that carry the marker
    variable, and those of the session (`sessions`: its id -> folder) in case they wiped their variables."""
    wanted = set(folders)
    found: dict[str, set[int]] = {folder: set() for folder in wanted}
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):
            folder = sessions.get(os.getsid(pid)) or psutil.Process(pid).environ().get(MARKER)
            if folder in wanted:
                found[folder].add(pid)
    return found


def find_wrapper(folder: str) -> int | None:
    """The wrapper of a task folder by its command line, for when its record could not be written."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-1:] == [f"{folder}/run.sh"] and process.status() != psutil.STATUS_ZOMBIE:
                return process.pid
    return None


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each process; gone or not ours is fine."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def send_group(leader: int, number: signal.Signals) -> None:
    """Signal the process group that `leader` leads; gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
