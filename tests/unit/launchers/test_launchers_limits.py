"""Which limits a machine offers, on pretended cgroup trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openpaisdk.launchers import limits
from openpaisdk.launchers.limits import Limits, find_limits, memory_ceiling_mb, own_cgroups

V1_MOUNTS = """\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
99 31 0:40 / /proc rw - proc proc rw
"""


def test_own_cgroups_of_a_hybrid_machine() -> None:
    found = own_cgroups(V1_MOUNTS, "4:memory:/user/a\n1:cpu,cpuacct:/\n0::/x\n")
    assert found == {
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "memory": Path("/sys/fs/cgroup/memory/user/a"),
        "": Path("/sys/fs/cgroup/unified/x"),
    }


def test_own_cgroups_inside_a_container_are_below_its_root() -> None:
    mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    assert own_cgroups(mounts, "4:memory:/docker/abc\n") == {"memory": Path("/sys/fs/cgroup/memory")}


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    """A v2 tree with this process in `unit`; plain files stand in for the kernel's."""
    unit = tmp_path / "fs" / "unit"
    unit.mkdir(parents=True)
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(f"1 1 0:1 / {tmp_path}/fs rw - cgroup2 cgroup2 rw\n")
    (proc / "cgroup").write_text("0::/unit\n")
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    (unit / "cgroup.procs").write_text("77\n")
    (unit / "cgroup.subtree_control").write_text("cpu memory\n")
    return tmp_path


def test_a_delegated_v2_cgroup_is_used_and_the_server_moves_to_a_leaf(
    unified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_usable", lambda parent, name: True)
    unit = unified / "fs" / "unit"
    monkeypatch.setattr(
        limits, "_write", lambda path, value: None if "subtree" in path.name else path.write_text(str(value))
    )
    found = find_limits(proc=unified / "proc", pid=77)
    assert found == Limits("cgroup v2", unit, unit)
    assert (unit / "opai-server" / "cgroup.procs").read_text() == "77"


def test_a_v2_cgroup_without_the_memory_controller_is_not(unified: Path) -> None:
    (unified / "fs" / "unit" / "cgroup.controllers").write_text("pids\n")
    assert find_limits(proc=unified / "proc", pid=77).kind == "rlimit"


def test_no_cgroups_at_all(tmp_path: Path) -> None:
    assert find_limits(proc=tmp_path) == Limits("rlimit")


def test_v2_limits_are_written(tmp_path: Path) -> None:
    made = Limits("cgroup v2", tmp_path, tmp_path).make("task", cpu=2, memory_mb=100)
    assert made == [str(tmp_path / "task")]
    assert (tmp_path / "task" / "memory.max").read_text() == str(100 << 20)
    assert (tmp_path / "task" / "cpu.max").read_text() == "200000 100000"


def test_v1_limits_are_written(tmp_path: Path) -> None:
    for name in ("memory", "cpu"):
        (tmp_path / name).mkdir()
    means = Limits("cgroup v1", tmp_path / "memory", tmp_path / "cpu")
    assert len(means.make("task", cpu=3, memory_mb=100)) == 2
    assert (tmp_path / "memory/task/memory.limit_in_bytes").read_text() == str(100 << 20)
    assert (tmp_path / "cpu/task/cpu.cfs_quota_us").read_text() == "300000"


def test_members_are_found_below_too_and_removal_waits_for_them(tmp_path: Path) -> None:
    (tmp_path / "task" / "inner").mkdir(parents=True)
    (tmp_path / "task" / "cgroup.procs").write_text("1\n2\n")
    (tmp_path / "task" / "inner" / "cgroup.procs").write_text("3\n")
    assert limits.members([str(tmp_path / "task"), str(tmp_path / "gone")]) == {1, 2, 3}
    assert not limits.remove([str(tmp_path / "task")])
    assert limits.remove([str(tmp_path / "gone")])


@pytest.mark.parametrize(
    ("means", "gpus", "reason", "words"),
    [
        (Limits("cgroup v2", Path("/m"), Path("/m")), 1, "LimitsApplied", "512 MB and 2 CPUs, enforced"),
        (Limits("cgroup v1", Path("/m")), 0, "LimitsApplied", "CPU use is not limited"),
        (Limits("rlimit"), 0, "LimitsApplied", "per process by rlimit"),
        (Limits("rlimit"), 1, "LimitsNotEnforced", "not enforced"),
    ],
)
def test_people_are_told_what_holds(means: Limits, gpus: int, reason: str, words: str) -> None:
    told = means.describe(cpu=2, memory_mb=512, gpus=gpus)
    assert told[0] == reason and words in told[1]


def test_rlimits_stand_in_only_without_cgroups_and_gpus() -> None:
    assert Limits("rlimit").data_limit_kb(memory_mb=2, gpus=0) == 2048
    assert Limits("rlimit").data_limit_kb(memory_mb=2, gpus=1) is None
    assert Limits("cgroup v2", Path("/m")).data_limit_kb(memory_mb=2, gpus=0) is None


def test_the_tightest_limit_above_us_counts(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (tmp_path / "outer" / "memory.max").write_text(f"{300 << 20}\n")
    assert memory_ceiling_mb({"": inner}) == 300
    assert memory_ceiling_mb({}) is None


def test_this_machine_answers() -> None:
    assert find_limits().kind in ("cgroup v2", "cgroup v1", "rlimit")
    assert not list(Path("/sys/fs/cgroup").glob(f"*/opai-probe-{os.getpid()}"))
