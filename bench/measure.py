"""Shared by the benches: medians taken in turns, so that noise disturbs all sides alike, in a clean home."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

BARE = [sys.executable, "-c", "pass"]


def environment(home: Path) -> dict[str, str]:
    """A person's environment with an empty home; byte code is cached, as after any first run."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if k != "PYTHONDONTWRITEBYTECODE" and not k.startswith(("OPAI_", "PAI_"))
    }
    return {**kept, "HOME": str(home), "OPENPAI_HOME": str(home / ".openpai")}


@contextmanager
def empty_home() -> Iterator[Path]:
    """A home whose local server, if one was started, is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="opai-bench-") as folder:
        home = Path(folder)
        old = {name: os.environ.get(name) for name in ("HOME", "OPENPAI_HOME")}
        os.environ.update(HOME=str(home), OPENPAI_HOME=str(home / ".openpai"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            yield home
        finally:
            from support.servers import end_processes_of

            end_processes_of(home)
            for name, value in old.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def interleaved(actions: dict[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """The median of each action in milliseconds, all taking turns after one warm-up round."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            spent = seconds(action)
            if number:
                taken[name].append(spent * 1000)
    return {name: statistics.median(times) for name, times in taken.items()}


def command(argv: list[str], home: Path, **options: object) -> Callable[[], object]:
    """An action that runs a command to its end and insists that it succeeded."""

    def run() -> object:
        return subprocess.run(argv, env=environment(home), check=True, capture_output=True, **options)  # type: ignore[call-overload]

    return run


def report(title: str, value: str, promise: str, kept: bool) -> None:
    print(f"{title:<58} {value:<28} promised {promise:<18} {'kept' if kept else 'MISSED'}", flush=True)
