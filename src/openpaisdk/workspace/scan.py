"""Which files go with a job: from files, folders and globs to what is sent under which name."""

# pathlib costs too much where ten thousand files are looked at for every submission.
# ruff: noqa: PTH100, PTH109, PTH110, PTH111, PTH113, PTH115, PTH116, PTH117, PTH118, PTH119, PTH120, PTH207

from __future__ import annotations

import os
import stat

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.storage.ignore import Ignoring, is_environment, rules_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_GLOB = frozenset("*?[")


class SourceFile:
    """A file to send: its name in the job, where it is here, and what its status said."""

    __slots__ = ("ctime_ns", "inode", "mode", "mtime_ns", "name", "path", "size")

    def __init__(self, name: str, path: str, found: os.stat_result) -> None:
        self.name = name
        self.path = path
        self.size = found.st_size
        self.mode = 0o755 if found.st_mode & 0o100 else 0o644
        self.mtime_ns = found.st_mtime_ns
        self.ctime_ns = found.st_ctime_ns
        self.inode = found.st_ino


class Sources:
    """What was found: files by name in the job, links that stay inside, empty folders, what was left out."""

    def __init__(self) -> None:
        self.files: dict[str, SourceFile] = {}
        self.links: dict[str, str] = {}
        self.folders: set[str] = set()
        self.left_out: list[str] = []

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())

    def largest(self, count: int = 3) -> list[SourceFile]:
        """The files that weigh most."""
        return sorted(self.files.values(), key=lambda file: -file.size)[:count]


def scan(paths: Sequence[str], cwd: str | None = None) -> Sources:
    """Find the files of the named paths, or of the current folder when none is named."""
    here = os.path.abspath(cwd or os.getcwd())
    found = Sources()
    for text in paths or [here]:
        for path in _expanded(text, here):
            _add(found, path, text, here)
    return found


def is_forbidden(path: str) -> bool:
    """Whether a folder is never sent as a whole: the root, the home folder, or one above it."""
    real = os.path.realpath(path)
    home = os.path.realpath(os.path.expanduser("~"))
    return real == home or os.path.dirname(real) == real or home.startswith(real.rstrip(os.sep) + os.sep)


def _expanded(text: str, here: str) -> list[str]:
    path = os.path.normpath(os.path.join(here, os.path.expanduser(text)))
    if os.path.lexists(path) or not _GLOB.intersection(text):
        return [path]
    from glob import glob

    found = sorted(glob(path, recursive=True))
    if not found:
        raise NotFoundError(f"-s {text}: no file fits", hint="quote the pattern, and look with `ls`")
    return found


def _add(found: Sources, path: str, text: str, here: str) -> None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise NotFoundError(f"-s {text}: there is no such file or folder") from None
    except OSError as error:
        raise UsageError(f"-s {text}: it cannot be read: {error.strerror}") from None
    inside = path == here or path.startswith(here.rstrip(os.sep) + os.sep)
    name = os.path.relpath(path, here) if inside else os.path.basename(path)
    name = "" if name == "." else name.replace(os.sep, "/")
    if not stat.S_ISDIR(status.st_mode):
        found.files[name] = SourceFile(name, path, _regular(path, status))
        return
    if is_forbidden(path):
        raise UsageError(
            f"-s {text}: the file system or the home folder as a whole is never sent",
            hint="go to the folder of the project, or name its files with -s",
        )
    rules = rules_for(path) if path == here else Ignoring(path)
    _walk(found, path, name, rules, path)


def _regular(path: str, status: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"-s {path}: it is neither a file nor a folder")
    return status


def _walk(found: Sources, folder: str, name: str, rules: Ignoring, top: str) -> None:
    empty = True
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        raise UsageError(
            f"{folder} cannot be read: permission denied", hint="name it in .opaiignore to leave it out"
        ) from None
    for entry in entries:
        inner = f"{name}/{entry.name}" if name else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if rules.leaves_out(entry.name, is_folder):
            continue
        if entry.is_symlink():
            _add_link(found, entry, inner, top)
        elif is_folder:
            if is_environment(entry.path):
                found.left_out.append(f"{inner} (a virtual environment)")
                continue
            _walk(found, entry.path, inner, rules.below(entry.path, entry.name), top)
        elif entry.is_file(follow_symlinks=False):
            # scandir's own status has no inode on Windows, and only there.
            status = os.stat(entry.path) if os.name == "nt" else entry.stat(follow_symlinks=False)
            found.files[inner] = SourceFile(inner, entry.path, status)
        else:
            continue
        empty = False
    if empty and name:
        found.folders.add(name)


def _add_link(found: Sources, entry: os.DirEntry[str], name: str, top: str) -> None:
    """Links that stay inside go as links; of those that leave, files go as files and folders stay at home."""
    target = os.path.realpath(entry.path)
    real_top = os.path.realpath(top)
    if not os.path.exists(target):
        found.left_out.append(f"{name} (a link to nothing)")
    elif target.startswith(real_top + os.sep) and not os.path.isabs(os.readlink(entry.path)):
        found.links[name] = os.readlink(entry.path).replace(os.sep, "/")
    elif os.path.isfile(target):
        found.files[name] = SourceFile(name, entry.path, os.stat(entry.path))
    else:
        found.left_out.append(f"{name} (a link to a folder outside)")
