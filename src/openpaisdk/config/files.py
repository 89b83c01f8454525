"""Small JSON files that hold credentials: private, replaced atomically, safe against two writers at once."""

# pathlib costs a third of a bare interpreter start, and every command reads these files.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH111, PTH118, PTH120, PTH123

from __future__ import annotations

import json
import os

from openpaisdk.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Any


def home_path(*parts: str) -> str:
    """A path below the user's own folder: `OPENPAI_HOME`, else `~/.openpai`."""
    root = os.environ.get("OPENPAI_HOME") or os.path.join("~", ".openpai")
    return os.path.join(os.path.abspath(os.path.expanduser(root)), *parts)


def home() -> Path:
    """The user's own folder: `OPENPAI_HOME`, else `~/.openpai`."""
    from pathlib import Path

    return Path(home_path())


def make_private_folder(path: str) -> None:
    """Make the folder (and those above it) so that only the owner can look inside."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {path}: {error.strerror}", hint=_remedy(path, error)
        ) from error


def _remedy(path: str, error: OSError) -> str:
    import errno

    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return "make room on the disk and try again; nothing was changed"
    if path.startswith(home_path()):
        return "set OPENPAI_HOME to a folder that you can read and write"
    return "change its permissions, or go to a folder that you can read and write"


class locked:
    """Hold the lock that belongs to `path`, waiting for it as long as it takes; released even by a crash.

    The lock is on a file of its own (`path` + ".lock"), because `path` itself is replaced while it is held.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path) + ".lock"
        self._file = -1

    def __enter__(self) -> locked:
        make_private_folder(os.path.dirname(self.path))
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(
                f"cannot lock {self.path}: {error.strerror}", hint=_remedy(self.path, error)
            ) from error
        _lock(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _unlock(self._file)
        os.close(self._file)


if os.name == "nt":

    def _lock(file: int) -> None:
        import msvcrt
        import time

        while True:
            os.lseek(file, 0, os.SEEK_SET)
            try:
                # LK_LOCK gives up after ten seconds; the loop makes the wait endless as on POSIX.
                msvcrt.locking(file, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
                return
            except OSError:
                time.sleep(0.05)

    def _unlock(file: int) -> None:
        import msvcrt

        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]

else:

    def _lock(file: int) -> None:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: int) -> None:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


def write_private(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file in one step, readable by its owner only; a symbolic link stays a link."""
    target = os.path.realpath(path)
    make_private_folder(os.path.dirname(target))
    draft = f"{target}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "w", encoding="utf-8", newline="\n") as draft_file:
                draft_file.write(text)
                draft_file.flush()
                os.fsync(draft_file.fileno())
            os.replace(draft, target)
        except BaseException:
            try:
                os.unlink(draft)
            except OSError:
                pass
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot write {target}: {error.strerror or error}", hint=_remedy(target, error)
        ) from error


def read_json(path: str | os.PathLike[str]) -> Any:
    """What the file holds, None where there is none; a broken one is named with line and column."""
    shown = os.fspath(path)
    try:
        with open(shown, encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{shown}: not UTF-8 text (byte {error.start})",
            hint="save it as UTF-8, or move it away and start with a new one",
        ) from error
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}", hint=_remedy(shown, error)) from error
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{shown}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}",
            hint="correct the file at that place, or move it away and start with a new one",
        ) from error


def update_json(path: str | os.PathLike[str], change: Callable[[Any], Any]) -> Any:
    """Read, change and replace the file under its lock.

    `change` gets what the file holds (None: there is none) and returns what it shall hold.
    """
    with locked(path):
        found = change(read_json(path))
        write_private(path, json.dumps(found, indent=4, ensure_ascii=False) + "\n")
    return found
