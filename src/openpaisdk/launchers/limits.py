"""Memory and CPU limits of process tasks: by cgroup v2 or v1 where they may be used, by rlimit elsewhere."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

PERIOD_US = 100_000
SERVER_LEAF = "opai-server"
PREFIX = "opai-task-"
Kind = Literal["cgroup v2", "cgroup v1", "rlimit"]


class Limits(NamedTuple):
    """The means this machine offers: under which folders a task's cgroups are made. Without any, rlimits."""

    kind: Kind
    memory: Path | None = None
    cpu: Path | None = None

    def make(self, name: str, *, cpu: int, memory_mb: int) -> list[str]:
        """Make the cgroups of one task and set its limits; their paths. Raises OSError when the machine
        changed its mind since `find_limits`."""
        made = []
        size, quota = memory_mb * 1024 * 1024, cpu * PERIOD_US
        for parent in dict.fromkeys(found for found in (self.memory, self.cpu) if found):
            group = parent / name
            group.mkdir(exist_ok=True)
            made.append(str(group))
            if self.kind == "cgroup v2":
                _write(group / "memory.max", size)
                _write_if_there(group / "memory.swap.max", 0)
                _write_if_there(group / "memory.oom.group", 1)
                if self.cpu:
                    _write(group / "cpu.max", f"{quota} {PERIOD_US}")
                continue
            if parent == self.memory:
                _write(group / "memory.limit_in_bytes", size)
                _write_if_there(group / "memory.memsw.limit_in_bytes", size)
            if parent == self.cpu:
                _write(group / "cpu.cfs_period_us", PERIOD_US)
                _write(group / "cpu.cfs_quota_us", quota)
        return made

    def data_limit_kb(self, *, memory_mb: int, gpus: int) -> int | None:
        """The rlimit to set instead. Not for tasks with GPUs, whose driver maps far more than it uses."""
        return memory_mb * 1024 if self.kind == "rlimit" and not gpus else None

    def describe(self, *, cpu: int, memory_mb: int, gpus: int) -> tuple[str, str]:
        """(reason, message) of the event that tells people what holds for their job."""
        cpus = f"{cpu} CPU{'' if cpu == 1 else 's'}"
        if self.memory:
            rest = f" and {cpus}" if self.cpu else "; CPU use is not limited"
            return "LimitsApplied", f"memory {memory_mb} MB{rest}, enforced per task by {self.kind}"
        if not gpus:
            return (
                "LimitsApplied",
                f"memory {memory_mb} MB per process by rlimit; CPU not limited (no writable cgroup)",
            )
        return (
            "LimitsNotEnforced",
            f"memory {memory_mb} MB and {cpus} are not enforced: no writable cgroup, and an rlimit would "
            "break programs that use a GPU",
        )


def find_limits(*, proc: Path = Path("/proc/self"), pid: int | None = None) -> Limits:
    """What can be used here. Tries by making and removing a cgroup; moves this process into a leaf of
    its own cgroup where cgroup v2 demands it and nothing else lives there."""
    try:
        own = own_cgroups((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
    except OSError:
        return Limits("rlimit")
    unified = _unified_parent(own[""], pid or os.getpid()) if "" in own else None
    if unified:
        has_cpu = "cpu" in _words(unified / "cgroup.subtree_control")
        return Limits("cgroup v2", unified, unified if has_cpu else None)
    memory = own.get("memory")
    if memory and _usable(memory, "memory.limit_in_bytes"):
        cpu = own.get("cpu")
        return Limits("cgroup v1", memory, cpu if cpu and _usable(cpu, "cpu.cfs_quota_us") else None)
    return Limits("rlimit")


def own_cgroups(mountinfo: str, cgroup: str) -> dict[str, Path]:
    """The folder of this process's cgroup per v1 controller, and under "" the v2 one, as far as they are
    mounted. Tasks go below these, never beside them, so that a limit set on the server holds for its
    tasks."""
    paths: dict[str, str] = {}
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, Path] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split()[:3]
        names: Iterable[str] = options.split(",") if kind == "cgroup" else [""] if kind == "cgroup2" else []
        for name in names:
            if name in paths and name not in found:
                inside = paths[name]
                if root != "/" and (inside + "/").startswith(root + "/"):
                    inside = inside[len(root) :]
                found[name] = Path(point + inside) if inside.strip("/") else Path(point)
    return found


def name_of(folder: str) -> str:
    """The cgroup of a task folder; the first half is the same for all folders side by side."""
    halves = (str(Path(folder).parent), folder)
    first, second = (hashlib.sha256(half.encode()).hexdigest()[:12] for half in halves)
    return f"{PREFIX}{first}-{second}"


def remove_stale(means: Limits, *, older_than: float = 600.0) -> None:
    """Remove what tasks left whose folders were deleted before a server could see their end. A cgroup
    with a process in it cannot be removed, and none stays without one for minutes before its task starts."""
    for parent in {found for found in (means.memory, means.cpu) if found}:
        for group in parent.glob(PREFIX + "*"):
            with suppress(OSError):
                if time.time() - group.stat().st_mtime > older_than:
                    group.rmdir()


def members(cgroups: Sequence[str]) -> set[int]:
    """Every process in the cgroups of one task, and in those that it made below them."""
    found: set[int] = set()
    for group in cgroups:
        for folder in _with_those_below(group):
            found.update(int(word) for word in _words(Path(folder, "cgroup.procs")))
    return found


def remove(cgroups: Sequence[str]) -> bool:
    """Remove the cgroups with those below them; False while a process is still in one."""
    gone = True
    for group in cgroups:
        for folder in reversed(_with_those_below(group)):
            try:
                Path(folder).rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
    return gone


def _with_those_below(group: str) -> list[str]:
    try:
        has_none = Path(group).stat().st_nlink <= 2
    except OSError:
        return []
    return [group] if has_none else [folder for folder, _, _ in os.walk(group)]


def oom_counters(cgroups: Iterable[str]) -> list[str]:
    """The files that count how often the kernel killed for memory, whichever of them exist."""
    return [f"{group}/{name}" for group in cgroups for name in ("memory.events", "memory.oom_control")]


def memory_ceiling_mb(own: Mapping[str, Path]) -> int | None:
    """The memory limit this process itself lives under, if any."""
    ceilings = []
    for controller, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes")):
        folder = own.get(controller)
        while folder and len(folder.parts) > 3:
            ceilings += [int(word) >> 20 for word in _words(folder / name) if word.isdigit()]
            folder = folder.parent
    return min(ceilings, default=None)


def _unified_parent(own: Path, pid: int) -> Path | None:
    if "memory" not in _words(own / "cgroup.controllers"):
        return None
    if own.name == SERVER_LEAF:
        own = own.parent
    elif _words(own / "cgroup.procs") == [str(pid)]:
        # Only a cgroup without processes of its own may hand controllers to those below it.
        with suppress(OSError):
            leaf = own / SERVER_LEAF
            leaf.mkdir(exist_ok=True)
            _write(leaf / "cgroup.procs", pid)
    for parent in (own, *own.parents):
        if not os.access(parent / "cgroup.procs", os.W_OK):
            return None
        if parent == own:
            for controller in ("+memory", "+cpu"):
                with suppress(OSError):
                    _write(parent / "cgroup.subtree_control", controller)
        if "memory" in _words(parent / "cgroup.subtree_control") and _usable(parent, "memory.max"):
            return parent
    return None


def _usable(parent: Path, name: str) -> bool:
    probe = parent / f"opai-probe-{os.getpid()}"
    try:
        probe.mkdir(exist_ok=True)
        usable = os.access(probe / name, os.W_OK)
        probe.rmdir()
    except OSError:
        return False
    return usable


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _write(path: Path, value: object) -> None:
    path.write_text(str(value))


def _write_if_there(path: Path, value: object) -> None:
    if path.exists():
        with suppress(OSError):
            _write(path, value)
