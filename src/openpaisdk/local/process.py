"""Whether a process that was noted still runs, and is not another one that got the same number."""

# pathlib costs a third of a bare interpreter start, and every command on the embedded cluster comes here.
# ruff: noqa: PTH123

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Children of this process, to be collected when they end.
started_here: set[int] = set()


def alive(state: dict[str, Any], *, thorough: bool = False) -> bool:
    """Whether the process still runs and is not another one that got the same number.

    Without /proc, telling them apart takes psutil: `thorough` loads it, for what does harm if wrong.
    """
    pid = state["pid"]
    if pid in started_here:
        try:
            os.waitpid(pid, os.WNOHANG)
        except OSError:
            pass
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    ticks = start_ticks(pid)
    if ticks == 0:
        return False
    # Ticks since boot do not change when somebody sets the clock, as the time of day of a start does.
    if ticks is not None and isinstance(state.get("pid_ticks"), int):
        return bool(ticks == state["pid_ticks"])
    began = None if ticks is None else _began(ticks)
    if began is None and thorough:
        began = began_by_psutil(pid)
    if began == 0.0:
        return False
    told = state.get("pid_started")
    return began is None or not isinstance(told, (int, float)) or abs(began - told) < 3.0


def start_ticks(pid: int) -> int | None:
    """When a process began, in ticks since boot: 0 if it is over, None where there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return 0 if fields[0] == b"Z" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _began(ticks: int) -> float | None:
    """The same in seconds since the epoch, as the clock is set now."""
    try:
        with open("/proc/stat", "rb") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def began_by_psutil(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return 0.0 if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.NoSuchProcess:
        return 0.0
    except psutil.Error:
        return None
