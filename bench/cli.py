"""`import openpaisdk` at most 2x the bare interpreter, `opai --help` 4x, `opai job list` (warm server) 6x."""

from __future__ import annotations

import sys
from pathlib import Path

from measure import BARE, command, empty_home, interleaved, report

PROMISES = {"import openpaisdk": 2, "opai --help": 4, "opai job list": 6}


def main() -> None:
    opai = str(Path(sys.executable).parent / "opai")
    with empty_home() as home:
        times = interleaved(
            {
                "bare": command(BARE, home),
                "import openpaisdk": command([sys.executable, "-c", "import openpaisdk"], home),
                "opai --help": command([opai, "--help"], home),
                "opai job list": command([opai, "job", "list"], home),
            },
            rounds=21,
        )
    for name, promised in PROMISES.items():
        ratio = times[name] / times["bare"]
        report(name, f"{times[name]:.1f} ms, {ratio:.2f}x bare", f"<= {promised}x", ratio <= promised)


if __name__ == "__main__":
    main()
