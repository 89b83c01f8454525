"""First log line of `opai job sub --follow -- echo hi`, warm server: at most 8x the bare interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from measure import BARE, command, empty_home, environment, interleaved, report


def first_line(opai: str, home: Path) -> None:
    process = subprocess.Popen(
        [opai, "job", "sub", "--no-source", "--follow", "--", "echo", "hi"],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == b"hi\n", line
    # The rest of the process is not part of the promise, but must not disturb the next round.
    first_line.running = process  # type: ignore[attr-defined]


def finish() -> None:
    process = first_line.running  # type: ignore[attr-defined]
    process.stdout.close()
    process.wait(30)


def main() -> None:
    opai = str(Path(sys.executable).parent / "opai")
    with empty_home() as home:
        first_line(opai, home)
        finish()
        times: dict[str, float] = {}
        for _ in range(2):
            times = interleaved(
                {
                    "bare": command(BARE, home),
                    "sub": lambda: first_line(opai, home),
                    "(finish)": finish,
                    "whole": command(
                        [opai, "job", "sub", "--no-source", "--follow", "--", "echo", "hi"], home, cwd=home
                    ),
                },
                rounds=12,
            )
        ratio = times["sub"] / times["bare"]
        report(
            "first log line, warm server", f"{times['sub']:.0f} ms, {ratio:.1f}x bare", "<= 8x", ratio <= 8
        )
        whole = times["whole"] / times["bare"]
        print(f"{'whole command':<58} {times['whole']:.0f} ms, {whole:.1f}x bare ({times['bare']:.1f} ms)")


if __name__ == "__main__":
    main()
