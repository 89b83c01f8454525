"""Joins this terminal to a command that the server runs inside a task: keys in, output out."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.core import Cluster

READ_SIZE = 65536


def run_in_task(
    cluster: Cluster, job: str, command: list[str], *, task: str, tty: bool, stdin: bool, capture: bool
) -> dict[str, Any]:
    """Runs it to the end; `exitCode`, and with `capture` also `stdout` and `stderr` as text."""
    from shutil import get_terminal_size

    size = get_terminal_size()
    run = cluster.exec_start(job, command, task=task, tty=tty, rows=size.lines, columns=size.columns)
    collected: dict[str, list[bytes]] = {"out": [], "err": []}
    code = 1
    with _Keyboard(
        cluster, job, run, raw=tty and stdin and os.name == "posix" and sys.stdin.isatty(), forward=stdin
    ):
        for kind, data in cluster.exec_output(job, run):
            if kind == "exit":
                code = int(data)
            elif capture:
                collected[kind].append(data)
            else:
                _write(sys.stderr if kind == "err" else sys.stdout, data)
    found: dict[str, Any] = {"exitCode": code}
    if capture:
        found["stdout"] = b"".join(collected["out"]).decode("utf-8", "replace")
        found["stderr"] = b"".join(collected["err"]).decode("utf-8", "replace")
    return found


def _write(stream: Any, data: bytes) -> None:
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


class _Keyboard:
    """Passes standard input on from a thread of its own; `raw` hands every key over, Ctrl-C included."""

    def __init__(self, cluster: Cluster, job: str, run: str, *, raw: bool, forward: bool) -> None:
        self.cluster, self.job, self.run = cluster, job, run
        self.raw, self.forward = raw, forward
        self._saved: Any = None
        self._wake: tuple[int, int] | None = None

    def __enter__(self) -> None:
        if not self.forward:
            if not sys.stdin.closed:
                self.cluster.exec_input(self.job, self.run, b"", end=True)
            return
        from threading import Thread

        if self.raw:
            self._enter_raw()
        Thread(target=self._pass_on, daemon=True).start()

    def __exit__(self, *failure: object) -> None:
        if self._saved is not None:
            import signal
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
            if failure[0] is not None:
                # What went wrong is not said behind the prompt of the shell that is gone.
                sys.stderr.write("\n")
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)

    def _enter_raw(self) -> None:
        import signal
        import termios
        import tty

        self._saved = termios.tcgetattr(0)
        tty.setraw(0)
        self._wake = os.pipe()
        writer = self._wake[1]
        signal.signal(signal.SIGWINCH, lambda *_: os.write(writer, b"w"))

    def _pass_on(self) -> None:
        from openpaisdk.errors import OpenPAIError

        try:
            while self._one_step():
                pass
        except (OpenPAIError, OSError):
            # The command has ended, or the server has gone; the reader of the output tells which.
            return

    def _one_step(self) -> bool:
        if self._wake is not None:
            from select import select

            ready = select([0, self._wake[0]], [], [])[0]
            if self._wake[0] in ready:
                os.read(self._wake[0], READ_SIZE)
                size = os.get_terminal_size(0)
                self.cluster.exec_resize(self.job, self.run, size.lines, size.columns)
                return True
        # Not through sys.stdin: its lock, held while it waits, would hang the end of the program.
        data = os.read(0, READ_SIZE)
        self.cluster.exec_input(self.job, self.run, data, end=not data)
        return bool(data)
