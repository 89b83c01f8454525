"""Proof that a test left no process, cgroup or container behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from openpaisdk.launchers.limits import name_of, own_cgroups
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


def task_cgroups(folder: Path) -> list[str]:
    """Cgroups that launchers in this process made for task folders in `folder`."""
    proc = Path("/proc/self")
    try:
        own = own_cgroups((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
    except OSError:
        return []
    family = name_of(str(folder / "task")).rpartition("-")[0]
    return [str(found) for group in own.values() for found in group.glob(f"{family}-*") if found.is_dir()]


def assert_nothing_left(folder: Path) -> None:
    """Fails when something is still there after a moment; the kernel needs one to bury the dead."""
    for _ in range(100):
        left = processes_of(folder) + task_cgroups(folder) + task_cgroups(folder / "small")
        if not left:
            return
        time.sleep(0.02)
    raise AssertionError(f"left behind: {left}")
