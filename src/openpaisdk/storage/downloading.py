"""Files and folders of a storage to this machine: in parallel, checked, and resumable."""

# Thousands of files: pathlib costs more than the work itself.
# ruff: noqa: PTH105, PTH108, PTH112, PTH118, PTH120, PTH123

from __future__ import annotations

import os

from openpaisdk.errors import ServerError
from openpaisdk.storage.contract import Crc, Entry, part_name
from openpaisdk.storage.local import make_folder, not_a_folder, publish_new, taken, translate
from openpaisdk.storage.trees import (
    SMALL,
    WORKERS,
    Progress,
    grouped,
    remote_files,
    run_all,
    safe_name,
    same_as_remote,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from openpaisdk.storage.contract import Storage
    from openpaisdk.storage.trees import Job


def download(
    store: Storage,
    remote: str,
    local: str,
    *,
    overwrite: bool = False,
    workers: int = WORKERS,
    progress: Progress | None = None,
    only: Callable[[str], bool] | None = None,
) -> dict[str, int]:
    """Copy a file or folder here; equal files are skipped, different ones need `overwrite`."""
    told = progress or Progress()
    found = store.stat(remote)
    if not found.is_folder:
        target = os.path.join(local, safe_name(found.name)) if _means_folder(local) else local
        told.files, told.bytes = 1, found.size
        if same_as_remote(store, remote, found, target):
            told.add(found.size, 1, skipped=True)
        else:
            _fetch(store, remote, found, target, overwrite, told)
        return told.summary()
    if os.path.lexists(local) and not os.path.isdir(local):
        raise not_a_folder(local)
    files = [(name, entry) for name, entry in remote_files(store, remote) if only is None or only(name)]
    told.files, told.bytes = len(files), sum(entry.size for _, entry in files)
    todo: list[tuple[str, Entry]] = []
    for name, entry in files:
        target = os.path.join(local, *name.split("/"))
        if same_as_remote(store, f"{remote.rstrip('/')}/{name}", entry, target):
            told.add(entry.size, 1, skipped=True)
        elif os.path.lexists(target) and not overwrite:
            raise taken(target)
        else:
            todo.append((name, entry))
    try:
        make_folder(local)
    except OSError as error:
        raise translate(error, local) from error
    run_all(_download_jobs(store, remote, local, todo, overwrite, told), workers, told)
    return told.summary()


def _means_folder(local: str) -> bool:
    return local.endswith(("/", os.sep)) or os.path.isdir(local)


def _download_jobs(
    store: Storage, remote: str, local: str, todo: list[tuple[str, Entry]], overwrite: bool, told: Progress
) -> Iterator[Job]:
    packs = hasattr(store, "read_many") and getattr(store, "ours", False)
    small = [item for item in todo if packs and item[1].size <= SMALL]
    large = [item for item in todo if not packs or item[1].size > SMALL]
    for name, entry in large:
        yield lambda name=name, entry=entry: _fetch(  # type: ignore[misc]
            store,
            f"{remote.rstrip('/')}/{name}",
            entry,
            os.path.join(local, *name.split("/")),
            overwrite,
            told,
        )
    for group in grouped(small, lambda item: item[1].size):
        yield lambda group=group: _fetch_pack(store, remote, local, group, overwrite, told)  # type: ignore[misc]


def _fetch_pack(
    store: Any, remote: str, local: str, group: list[tuple[str, Entry]], overwrite: bool, told: Progress
) -> None:
    wanted = dict(group)
    for name, contents in store.read_many(remote, list(wanted)):
        entry = wanted.pop(name, None)
        if entry is None:
            raise ServerError(f"{remote}: {name!r} came although nobody asked for it")
        _place(os.path.join(local, *name.split("/")), contents, entry, overwrite)
        told.add(len(contents), 1)
    for name, entry in wanted.items():
        target = os.path.join(local, *name.split("/"))
        _fetch(store, f"{remote.rstrip('/')}/{name}", entry, target, overwrite, told)


def _place(target: str, contents: bytes, entry: Entry, overwrite: bool) -> None:
    part = part_name(target, _key(entry))
    try:
        make_folder(os.path.dirname(target))
        with open(part, "wb") as file:
            file.write(contents)
        _publish(part, target, entry, overwrite)
    except OSError as error:
        raise translate(error, target) from error


def _fetch(store: Storage, remote: str, entry: Entry, target: str, overwrite: bool, told: Progress) -> None:
    if os.path.isdir(target) or (os.path.lexists(target) and not overwrite):
        raise taken(target)
    part = part_name(target, _key(entry))
    digest = Crc()
    try:
        make_folder(os.path.dirname(target))
        with open(part, "a+b") as file:
            file.seek(0)
            while block := file.read(1 << 20):
                told.go_on()
                digest.update(block)
            have = file.tell()
            told.add(have)
            for block in store.read(remote, have) if have < entry.size else ():
                file.write(block)
                digest.update(block)
                have += len(block)
                told.add(len(block))
        stored = store.checksum(remote, "crc32")
        if have != entry.size or (stored is not None and stored != digest.hexdigest()):
            os.unlink(part)
            raise ServerError(f"{remote} changed or was damaged on the way", hint="fetch it again")
        _publish(part, target, entry, overwrite)
    except OSError as error:
        raise translate(error, target) from error
    told.add(0, 1)


def _publish(part: str, target: str, entry: Entry, overwrite: bool) -> None:
    os.utime(part, (entry.modified, entry.modified))
    if overwrite:
        os.replace(part, target)
        return
    try:
        publish_new(part, target)
    except FileExistsError:
        raise taken(target) from None


def _key(entry: Entry) -> str:
    from hashlib import sha256

    return sha256(f"{entry.size} {entry.modified}".encode()).hexdigest()[:16]
