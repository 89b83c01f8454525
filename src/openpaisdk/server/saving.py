"""Keeps the files that a job wants saved when one of its tasks ends, however it ended.

A task may be hostile: links that lead out of its working folder are not followed, and its output folder may
have been turned into one. So everything is opened part by part, without following links.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from openpaisdk.errors import QuotaError
from openpaisdk.launchers.folder import TaskFolder, read_plain
from openpaisdk.protocol import totals
from openpaisdk.runtime.matching import matches, unmatched
from openpaisdk.scheduler import TaskRef
from openpaisdk.server.files.usage import Quota
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.launching import sdk_extras
from openpaisdk.server.settings import Settings

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOG = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 8 << 20
MOST_PROBLEMS = 5
REMEMBERED = 4096


class Wanted(NamedTuple):
    """What a job wants saved, and whether its tasks need folders of their own for that."""

    patterns: tuple[str, ...] = ()
    apart: bool = False


class Saved(NamedTuple):
    """What became of it: files and bytes kept, and in words what went wrong."""

    files: int
    bytes: int
    problems: tuple[str, ...]


class Savings:
    """What the jobs of a server want saved, remembered so that most ends of tasks cost nothing."""

    def __init__(self, settings: Settings, store: JobStore) -> None:
        self._settings = settings
        self._store = store
        self._quota = Quota(settings.file_quota_mb << 20)
        self._known: dict[str, Wanted] = {}

    def wanted(self, job_id: str) -> Wanted:
        """What a job wants saved."""
        if job_id not in self._known:
            self.learn(job_id, self._store.spec(int(job_id)))
        return self._known[job_id]

    def learn(self, job_id: str, spec: Mapping[str, Any] | None) -> None:
        """Remember what a job wants, from a spec that is at hand."""
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[job_id] = wanted_by(spec) if spec else Wanted()

    def plan(self, ref: TaskRef) -> Callable[[], Saved] | None:
        """What saves the files of a task attempt, for a thread; None where nothing is to be saved."""
        wanted = self.wanted(ref.job_id)
        job = self._store.by_id(int(ref.job_id)) if wanted.patterns else None
        if job is None:
            return None
        settings = self._settings
        folder = settings.task_folder(int(ref.job_id), ref.attempt, ref.role, ref.index, ref.task_attempt)
        target = settings.job_folder(job.user, job.name) / "output"
        if wanted.apart:
            target /= f"{ref.role}-{ref.index}"
        home = settings.files / "user" / job.user

        def keep() -> Saved:
            work = folder / "work"
            saved = save(wanted.patterns, work, settings.files, target, quota=self._quota, home=home)
            tell(folder, unmatched(wanted.patterns, saved.problems))
            return saved

        return keep


def describe(saved: Saved) -> tuple[str, str, str]:
    """Type, reason and message of the event that tells what became of it."""
    count = f"{saved.files} file{'' if saved.files == 1 else 's'}, {saved.bytes:,} bytes, kept as outputs"
    if not saved.problems:
        return "Normal", "OutputsSaved", count
    shown = "; ".join(saved.problems[:MOST_PROBLEMS])
    more = len(saved.problems) - MOST_PROBLEMS
    text = f"{count}; not kept: {shown}{f' and {more} more' if more > 0 else ''}"
    # File names are bytes, and not all of them are text.
    return "Warning", "OutputsNotSaved", text.encode("utf-8", "replace").decode()


def tell(folder: Path, lines: list[str]) -> None:
    """End the stderr of a task that succeeded with these lines; a task that failed has other troubles."""
    ended = TaskFolder(str(folder)).recorded_exit()
    if not lines or ended is None or ended.code != 0:
        return
    text = "".join(lines).encode("utf-8", "replace")
    # What cannot be told here is still told by the event.
    with suppress(OSError):
        log = os.open(folder / "stderr", _LOG)
        try:
            found = os.fstat(log)
            if stat.S_ISREG(found.st_mode):
                end = read_plain(str(folder / "stderr"), max(0, found.st_size - len(text)))
                os.write(log, _addition(end, text))
        finally:
            os.close(log)


def _addition(end: bytes, text: bytes) -> bytes:
    """What to add to a log that ends like this; nothing where a server that died meanwhile has told it."""
    if end == text:
        return b""
    return text if not end or end.endswith(b"\n") else b"\n" + text


def wanted_by(spec: Mapping[str, Any]) -> Wanted:
    """What the job spec says."""
    found = sdk_extras(spec).get("save")
    patterns = [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
    return Wanted(tuple(patterns), totals(spec)[1] > 1) if patterns else Wanted()


def save(
    patterns: tuple[str, ...], work: Path, files_root: Path, target: Path, *, quota: Quota, home: Path
) -> Saved:
    """Copy what fits the patterns below `work` to `target` in the file area. Blocks; may be repeated."""
    kept = size = 0
    try:
        top = os.open(work, _FOLDER)
    except OSError as error:
        return Saved(0, 0, (f"the working folder cannot be read: {error.strerror}",))
    try:
        fitting, problems = matches(patterns, str(work))
        for name, real in fitting.items():
            try:
                copied = _copy(top, real, files_root, target, name, quota, str(home))
            except QuotaError as error:
                problems.append(f"{name}: {error.message}")
            except OSError as error:
                problems.append(f"{name}: {error.strerror or error}")
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    break
            else:
                kept, size = kept + 1, size + copied
    finally:
        os.close(top)
    return Saved(kept, size, tuple(problems))


def _copy(top: int, path: str, files_root: Path, target: Path, name: str, quota: Quota, home: str) -> int:
    """Copy one file under its name, whole or not at all; how many bytes it has."""
    source = _open_below(top, path)
    try:
        found = os.fstat(source)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        quota.admit(home, found.st_size)
        folder, _, last = name.rpartition("/")
        place = _make_folders(files_root, target / folder)
        draft = f".{secrets.token_hex(8)}.saving"
        try:
            _write(source, place, draft, found)
            os.replace(draft, last, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=place)
            raise
        finally:
            os.close(place)
        quota.add(home, found.st_size)
        return found.st_size
    finally:
        os.close(source)


def _write(source: int, place: int, draft: str, found: os.stat_result) -> None:
    mode = 0o755 if found.st_mode & 0o100 else 0o644
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    copy = os.open(draft, flags, mode, dir_fd=place)
    try:
        while block := os.read(source, _BLOCK):
            view = memoryview(block)
            while view:
                view = view[os.write(copy, view) :]
        os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(copy)


def _open_below(top: int, path: str) -> int:
    *folders, last = path.split("/")
    fd = os.dup(top)
    for part in folders:
        try:
            below = os.open(part, _FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    try:
        return os.open(last, _FILE, dir_fd=fd)
    finally:
        os.close(fd)


def _make_folders(root: Path, folder: Path) -> int:
    """Open a folder below `root`, made where it is missing, without following a link on the way."""
    fd = os.open(root, _FOLDER)
    for part in folder.relative_to(root).parts:
        try:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=fd)
            below = os.open(part, _FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd
