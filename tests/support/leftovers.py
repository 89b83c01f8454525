"""Proof that a test left no process, cgroup or container behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from openpaisdk.launchers.limits import own_cgroups
from openpaisdk.launchers.wrapper import MARKER


def processes_of(folder: Path) -> list[str]:
    """Living processes whose command line or marker variable names the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            text = " ".join(process.cmdline())
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if str(folder) in text or str(folder) in process.environ().get(MARKER, ""):
                found.append(f"{process.pid} {text[:120]}")
        except psutil.Error:
            continue
    return found


def task_cgroups() -> list[str]:
    """Cgroups that a launcher in this process would have made."""
    proc = Path("/proc/self")
    try:
        own = own_cgroups((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
    except OSError:
        return []
    return [str(found) for group in own.values() for found in group.glob("opai-*") if found.is_dir()]


def assert_nothing_left(folder: Path) -> None:
    """Fails when something is still there after a moment; the kernel needs one to bury the dead."""
    suspects = set(task_cgroups())
    for _ in range(100):
        left = processes_of(folder)
        suspects = {
            group for group in suspects if Path(group).exists() and not _busy_elsewhere(group, folder)
        }
        if not left and not suspects:
            return
        time.sleep(0.02)
    raise AssertionError(f"left behind: processes {left}, cgroups {suspects}")


def _busy_elsewhere(group: str, folder: Path) -> bool:
    """Another test run on this machine may have tasks of its own."""
    pids = Path(group, "cgroup.procs").read_text().split() if Path(group).exists() else []
    try:
        markers = [psutil.Process(int(pid)).environ().get(MARKER, "") for pid in pids]
    except psutil.Error:
        return True
    return bool(pids) and not any(str(folder) in marker for marker in markers)
