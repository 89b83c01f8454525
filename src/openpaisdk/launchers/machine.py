"""This machine as a node: what tasks on it can be given."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil

from openpaisdk.launchers import limits
from openpaisdk.launchers.contract import Capacity, Node
from openpaisdk.launchers.gpus import find_gpus


def this_machine(fake_gpus: int | None = None) -> Capacity:
    """The only node there is, within the limits that this process itself lives under."""
    memory = psutil.virtual_memory().total >> 20
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    proc = Path("/proc/self")
    try:
        own = limits.own_cgroups((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
        memory = min(memory, limits.memory_ceiling_mb(own) or memory)
    except OSError:
        pass
    return Capacity((Node(socket.gethostname(), "127.0.0.1", cpus, memory, find_gpus(fake_gpus)),))
