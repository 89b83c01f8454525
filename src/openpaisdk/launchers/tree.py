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


def find_wrappers(folders: Iterable[str]) -> dict[str, int]:
    """The wrapper of each task folder by its command line, for when its record is not there (yet)."""
    wanted = {f"{folder}/run.sh": folder for folder in folders}
    found: dict[str, int] = {}
    for process in psutil.process_iter() if wanted else ():
        with suppress(psutil.Error):
            folder = wanted.get((process.cmdline() or [""])[-1])
            if folder is not None and process.status() != psutil.STATUS_ZOMBIE:
                found[folder] = process.pid
    return found


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each process; gone or not ours is fine."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def send_group(leader: int, number: signal.Signals) -> None:
    """Signal the process group that `leader` leads; gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
