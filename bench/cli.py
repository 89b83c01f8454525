"""`import openpaisdk` at most 2x the bare interpreter, `opai --help` 4x, `opai job list` (warm server) 6x.

And 10,000 jobs listed with a peak memory of at most 100 MB, however they are written.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measure import BARE, command, empty_home, environment, interleaved, report

PROMISES = {"import openpaisdk": 2, "opai --help": 4, "opai job list": 6}
ROWS = 10_000
MOST_MB = 100
PEAK = "open('/proc/self/status').read().split('VmHWM:')[1].split()[0]"


def starts(opai: str, home: Path) -> None:
    times = interleaved(
        {
            "bare": command(BARE, home),
            "import openpaisdk": command([sys.executable, "-c", "import openpaisdk"], home),
            "opai --help": command([opai, "--help"], home),
            "opai job list": command([opai, "job", "list"], home),
            "on a terminal": on_a_terminal([opai, "job", "list"], home),
        },
        rounds=21,
    )
    for name, promised in PROMISES.items():
        ratio = times[name] / times["bare"]
        value = f"{times[name]:.1f} ms, {ratio:.2f}x bare"
        report(name, value, f"<= {promised}x", ratio <= promised)
    ratio = times["on a terminal"] / times["bare"]
    title = "opai job list, on a terminal"
    report(title, f"{times['on a terminal']:.1f} ms, {ratio:.2f}x bare", "<= 6x", ratio <= 6)


def on_a_terminal(argv: list[str], home: Path) -> Callable[[], object]:
    """An action that runs a command on a terminal of its own and reads what it shows."""

    def run() -> None:
        ours, theirs = pty.openpty()
        with subprocess.Popen(argv, env=environment(home), stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            try:
                while os.read(ours, 65536):
                    pass
            except OSError:
                pass  # Linux says so when the other side is closed.
            os.close(ours)
        if process.returncode:
            raise SystemExit(f"{argv} ended with {process.returncode}")

    return run


def fill_store(opai: str, home: Path) -> None:
    """Puts old jobs into the stopped server's store; submitting them would take minutes."""
    import sqlite3

    from server_store import fill

    subprocess.run([opai, "server", "stop"], env=environment(home), check=True, capture_output=True)
    database = home / ".openpai" / "local" / "data" / "server.db"
    connection = sqlite3.connect(database, isolation_level=None)
    fill(connection, 0, ROWS)
    connection.close()
    subprocess.run([opai, "job", "list"], env=environment(home), check=True, capture_output=True)


def peak_mb(code: str, home: Path, rows: int = 0) -> float:
    """Most memory that a Python program held, as the kernel counted it, while it listed at least `rows`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; sys.stderr.write('PEAK ' + {PEAK})"],
        env=environment(home),
        check=True,
        capture_output=True,
        text=True,
    )
    if done.stdout.count("job-") < rows:
        raise SystemExit(f"only {done.stdout.count('job-')} rows were listed")
    return int(done.stderr.rpartition("PEAK ")[2]) / 1024


def first_row(opai: str, home: Path) -> float:
    """Milliseconds until the first job is on the screen."""
    began = time.perf_counter()
    with subprocess.Popen(
        [opai, "job", "list", "--all-users"], env=environment(home), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        spent = time.perf_counter() - began
        process.stdout.read()
    return spent * 1000


def many_rows(opai: str, home: Path) -> None:
    fill_store(opai, home)
    bare = peak_mb("pass", home)
    for output in ("table", "json"):
        words = ["job", "list", "--all-users", "-o", output]
        peak = peak_mb(f"from openpaisdk.cli.main import main\nmain({words!r})", home, ROWS)
        value = f"{peak:.0f} MB, bare {bare:.0f} MB"
        report(f"{ROWS:,} rows listed, peak memory, -o {output}", value, f"<= {MOST_MB} MB", peak <= MOST_MB)
    print(f"{ROWS:,} rows listed, first row after {first_row(opai, home):.0f} ms", flush=True)


def main() -> None:
    opai = str(Path(sys.executable).parent / "opai")
    with empty_home() as home:
        starts(opai, home)
        many_rows(opai, home)


if __name__ == "__main__":
    main()
