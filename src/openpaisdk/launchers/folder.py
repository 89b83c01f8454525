"""The folder of one task attempt: every file name in it, and the only code that reads or writes them.

    intent.json   what is to run, written before anything starts; no secrets
    run.sh        the wrapper, rendered by `wrapper`
    script.sh     the user's entry script          env.sh   its variables (0600)
    stdout stderr straight from the task           runtime.log   what the wrapper has to say
    started.json  the claim: whoever creates it runs the attempt, or makes sure that nobody ever does
    stop          the attempt is to end; a wrapper that has not started the script yet does not
    exit          blank until the wrapper writes the code over it
    work/         where the script starts

A task may be hostile (a container runs as root over its own folder), so nothing here follows a link or opens
anything but a plain file.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from openpaisdk.launchers.contract import Exit

BLANK_EXIT = b" " * 31 + b"\n"
NOT_A_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Intent(msgspec.Struct, kw_only=True):
    """What launch() decided before it started anything."""

    key: str
    launcher: str
    workdir: str
    cgroups: list[str] = []
    container: str | None = None
    image: str | None = None


class Claim(msgspec.Struct):
    """Who runs the attempt; `pid` 0 is nobody, ever. Without /proc `ticks` and `boot` are 0 and empty."""

    pid: int = 0
    ticks: int = 0
    boot: str = ""


class TaskFolder:
    """Paths and records of one attempt; cheap to make, holds nothing open."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def prepare(self, files: dict[str, bytes]) -> None:
        """Make the folder and everything the wrapper needs. What is written at the end needs no new
        space on the disk: the logs exist and the exit record is reserved."""
        Path(self.path).mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(self.file("work")).mkdir(mode=0o700, exist_ok=True)
        for name in ("stdout", "stderr", "runtime.log"):
            write_plain(self.file(name), b"", 0o600)
        write_plain(self.file("exit"), BLANK_EXIT, 0o600)
        for name, content in files.items():
            write_plain(self.file(name), content, 0o600)

    def intend(self, intent: Intent) -> None:
        write_plain(self.file("intent.json"), msgspec.json.encode(intent), 0o600)

    def intent(self) -> Intent | None:
        """What was intended, or None when launch() did not get that far."""
        try:
            return msgspec.json.decode(read_plain(self.file("intent.json")), type=Intent)
        except msgspec.MsgspecError:
            return None

    def forbid(self) -> bool:
        """Take the claim so that no wrapper ever runs; False when somebody has it already."""
        try:
            claim = os.open(
                self.file("started.json"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_A_LINK, 0o600
            )
        except FileExistsError:
            return False
        except OSError:
            return not Path(self.path).is_dir()
        with suppress(OSError):
            os.write(claim, b"{}\n")
        os.close(claim)
        return True

    def claimed(self) -> bool:
        return os.path.lexists(self.file("started.json"))

    def claim(self) -> Claim | None:
        """The claim, or None when there is none or its record is not (or could not be) written."""
        try:
            return msgspec.json.decode(read_plain(self.file("started.json")), type=Claim)
        except msgspec.MsgspecError:
            return None

    def started_at(self) -> float | None:
        return _changed_at(self.file("started.json"))

    def ask_to_stop(self) -> None:
        with suppress(OSError):
            write_plain(self.file("stop"), b"", 0o600)

    def recorded_exit(self) -> Exit | None:
        """How it ended according to the wrapper; None while that is not known."""
        fields = read_plain(self.file("exit"), limit=64).split()
        if len(fields) != 2 or not all(field.isdigit() for field in fields):
            return None
        return exit_from_code(int(fields[0]), oom=fields[1] != b"0", at=_changed_at(self.file("exit")) or 0.0)

    def record_exit(self, found: Exit) -> None:
        """Keep what the server learnt itself, for the next server."""
        with suppress(OSError):
            text = f"{found.code} {int(found.oom)}".ljust(len(BLANK_EXIT) - 1) + "\n"
            write_plain(self.file("exit"), text.encode(), 0o600, fresh=False)

    def log(self, stream: str) -> Path | None:
        path = Path(self.file(stream))
        try:
            return path if stat.S_ISREG(path.lstat().st_mode) else None
        except OSError:
            return None


def exit_from_code(code: int, *, oom: bool, at: float) -> Exit:
    """The shell's convention read backwards."""
    return Exit(code=code, signal=code - 128 if 128 < code <= 192 else None, oom=oom, at=at)


def read_plain(path: str, start: int = 0, limit: int = 1 << 20) -> bytes:
    """Bytes of a plain file; nothing when it is missing, a link, a pipe or unreadable."""
    try:
        opened = os.open(path, os.O_RDONLY | NOT_A_LINK)
    except OSError:
        return b""
    try:
        return os.pread(opened, limit, start) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(opened)


def write_plain(path: str, content: bytes, mode: int, *, fresh: bool = True) -> None:
    """Write a whole file; with fresh=False over what is there, which needs no new space on the disk."""
    flags = os.O_WRONLY | os.O_CREAT | NOT_A_LINK | (os.O_TRUNC if fresh else 0)
    opened = os.open(path, flags, mode)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(opened, view) :]
    finally:
        os.close(opened)


def _changed_at(path: str) -> float | None:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return None
