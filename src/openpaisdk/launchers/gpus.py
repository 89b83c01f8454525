"""Which GPUs this machine has."""

from __future__ import annotations

import shutil
import subprocess

QUERY = ("--query-gpu=index", "--format=csv,noheader")


def find_gpus(fake: int | None = None, *, timeout: float = 10.0) -> tuple[int, ...]:
    """The indexes that nvidia-smi reports, in its order; `fake` pretends there are that many. Blocks
    while asking; a driver that does not answer counts as no GPU."""
    if fake is not None:
        return tuple(range(fake))
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        answer = subprocess.run(
            [program, *QUERY], capture_output=True, text=True, timeout=timeout, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_indexes(answer.stdout)


def parse_indexes(text: str) -> tuple[int, ...]:
    """nvidia-smi's answer as numbers; lines that are not one (warnings) are skipped."""
    return tuple(int(line) for line in text.split("\n") if line.strip().isdigit())
