"""Numbers as people say them: 2 GPUs, 24 GB, 2 h, second."""

from __future__ import annotations

from .state import CPU, GPU, MEMORY, Task


def amount(dimension: int, number: int) -> str:
    """`2 GPUs`, `1 CPU`, `24 GB of memory`."""
    if dimension == MEMORY:
        return f"{memory(number)} of memory"
    word = {CPU: "CPU", GPU: "GPU"}[dimension]
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def bare_amount(dimension: int, number: int) -> str:
    """The same without the noun, for a second mention: `2`, `none`, `24 GB`."""
    if number <= 0:
        return "none"
    return memory(number) if dimension == MEMORY else str(number)


def memory(megabytes: int) -> str:
    """`512 MB`, `24 GB`, `1.5 GB`; never rounded, so that what is too much by a little looks so."""
    if megabytes < 1024 or megabytes * 10 % 1024:
        return f"{megabytes} MB"
    return f"{megabytes / 1024:.1f}".removesuffix(".0") + " GB"


def duration(seconds: float) -> str:
    """`40 s`, `5 min`, `2 h`, `3 days`."""
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{int(seconds)} s"
    if seconds < 2 * 3600:
        return f"{int(seconds // 60)} min"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h"
    return f"{int(seconds // 86400)} days"


def place_in_line(number: int) -> str:
    """`First`, `Second`, `Third`, then `4th`, `21st`."""
    if number <= 3:
        return ("First", "Second", "Third")[number - 1]
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def plural(number: int, noun: str) -> str:
    """`1 task`, `3 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def placed(tasks: list[Task]) -> str:
    """`2 tasks on n1 (GPU 0, 1), n2`."""
    nodes: dict[str, list[int]] = {}
    for task in tasks:
        assert task.placement is not None
        nodes.setdefault(task.placement.node, []).extend(task.placement.gpus)
    where = ", ".join(
        f"{node} (GPU {', '.join(map(str, sorted(gpus)))})" if gpus else node for node, gpus in nodes.items()
    )
    return f"{plural(len(tasks), 'task')} on {where}"
