"""SHA-256 of local files, remembered by what their status says, so that unchanged ones are not read again."""

# pathlib costs too much where ten thousand files are looked at for every submission.
# ruff: noqa: PTH103, PTH105, PTH120, PTH123

from __future__ import annotations

import json
import os
import time
from hashlib import sha256

from openpaisdk.config import home_path
from openpaisdk.errors import NotFoundError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from openpaisdk.workspace.scan import SourceFile

_BLOCK = 1 << 20
_MUCH = 64 << 20
_FINE_WINDOW_NS = 100_000_000
_COARSE_WINDOW_NS = 2_000_000_000


def digests(files: Iterable[SourceFile], folder: str) -> dict[str, str]:
    """Path -> SHA-256 for all files; `folder` names the memory to use."""
    store = home_path("cache", "hashes", sha256(folder.encode()).hexdigest()[:24] + ".json")
    known = _load(store)
    now = time.time_ns()
    found: dict[str, str] = {}
    unknown: list[SourceFile] = []
    for file in files:
        entry = known.get(file.path)
        if entry is not None and entry[:4] == [file.size, file.mtime_ns, file.ctime_ns, file.inode]:
            found[file.path] = str(entry[4])
        else:
            unknown.append(file)
    if not unknown and len(found) == len(known):
        return found
    for file, digest in zip(unknown, _hash_all(unknown)):
        found[file.path] = digest
    _save(store, {file.path: _entry(file, found[file.path]) for file in files if not _too_fresh(file, now)})
    return found


def hash_file(path: str) -> str:
    """SHA-256 of a file in hexadecimal."""
    digest = sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError:
        raise NotFoundError(f"{path} is gone since it was listed") from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="or leave it out with .opaiignore"
        ) from None
    return digest.hexdigest()


def _hash_all(files: list[SourceFile]) -> Iterable[str]:
    paths = [file.path for file in files]
    if sum(file.size for file in files) < _MUCH:
        return map(hash_file, paths)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(hash_file, paths))


def _too_fresh(file: SourceFile, now: int) -> bool:
    """Whether the file could change again and its time not show it; whole seconds betray a coarse clock."""
    window = _FINE_WINDOW_NS if file.mtime_ns % 1_000_000_000 else _COARSE_WINDOW_NS
    return max(file.mtime_ns, file.ctime_ns) > now - window


def _entry(file: SourceFile, digest: str) -> list[int | str]:
    return [file.size, file.mtime_ns, file.ctime_ns, file.inode, digest]


def _load(path: str) -> dict[str, list[int | str]]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    entries = found.get("files") if isinstance(found, dict) and found.get("version") == 1 else None
    return entries if isinstance(entries, dict) else {}


def _save(path: str, entries: dict[str, list[int | str]]) -> None:
    draft = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(draft, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "files": entries}, file, separators=(",", ":"))
        os.replace(draft, path)
    except OSError:
        pass  # a memory that cannot be kept only costs time
