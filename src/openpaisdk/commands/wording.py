"""Small words for numbers: ages, durations, amounts of memory and resources, outcomes."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


def duration(seconds: float | None) -> str:
    """4.2 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    for size, name, below, below_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {name} {rest} {below_name}" if rest else f"{whole // size} {name}"
    return f"{whole} s"


def ago(milliseconds: float | None, now: float | None = None) -> str:
    """now, 80 s ago, 95 min ago, 30 h ago, 3 d ago: one number, for a column."""
    if milliseconds is None:
        return ""
    seconds = int((time.time() if now is None else now) - milliseconds / 1000)
    if seconds < 1:
        return "now"
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name} ago"
    return f"{seconds} s ago"


def ran_for(status: Any, now: float | None = None) -> float | None:
    """Seconds from launch to the end, or until now; None when it was never launched."""
    begun, ended = status.get("launchedTime"), status.get("completedTime")
    if begun is None:
        return None
    until = ended / 1000 if ended else time.time() if now is None else now
    return max(0.0, float(until - begun / 1000))


def memory(megabytes: float | None) -> str:
    if megabytes is None:
        return ""
    return f"{megabytes / 1024:.3g} GB" if megabytes >= 1024 else f"{int(megabytes)} MB"


def file_size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return ""


def number(count: float, one: str, many: str | None = None) -> str:
    """`1 GPU`, `2 GPUs`."""
    shown = int(count) if float(count).is_integer() else count
    return f"{shown} {one if count == 1 else many or one + 's'}"


def resources(cpu: float, memory_mb: float, gpu: float) -> str:
    """2 CPUs, 24 GB, 1 GPU."""
    return f"{number(cpu, 'CPU')}, {memory(memory_mb)}, {number(gpu, 'GPU')}"


def capacity(found: Any) -> str:
    """What a server that has just started, or its status, says it has; empty where it does not say."""
    amounts = found.get("capacity") or found
    if not isinstance(amounts, dict) or "cpu" not in amounts:
        return ""
    memory_mb: float = next(
        (amounts[key] for key in ("memory_mb", "memoryMB", "memory") if key in amounts), 0
    )
    gpus: Any = amounts.get("gpu", amounts.get("gpus"))
    return resources(amounts["cpu"], memory_mb, len(gpus) if isinstance(gpus, list) else gpus or 0)


def shown_state(status: Any) -> str:
    """The state in small letters; a job asked to stop is `stopping` until it has ended."""
    state = str(status.get("state") or "UNKNOWN")
    if status.get("executionType") == "STOP" and state not in ENDED:
        return "stopping"
    return state.lower()


def said_state(state: str) -> str:
    """`has failed`, `is waiting`: the state as the end of a sentence."""
    if state in ("SUCCEEDED", "FAILED"):
        return f"has {state.lower()}"
    return {"STOPPED": "was stopped", "STOPPING": "is being stopped"}.get(state, f"is {state.lower()}")


def wrapped(text: str, width: int, indent: str = "  ") -> str:
    """No word is cut at the edge; what ` · ` separates is put on lines of its own, for copying."""
    if len(text) < width:
        return text
    from textwrap import wrap

    lines: list[str] = []
    for position, part in enumerate(text.split(" · ")):
        lines += wrap(
            part,
            width - 1,
            initial_indent=indent if position else "",
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def outcome_code(states: Iterable[str]) -> int:
    """Exit code for jobs that were waited for: 10 when one failed, else 11 when one was stopped, else 0."""
    found = set(states)
    if found - {"SUCCEEDED", "STOPPED"}:
        return 10
    return 11 if "STOPPED" in found else 0
