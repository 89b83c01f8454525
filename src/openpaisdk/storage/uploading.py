"""Local files and folders to a storage: in parallel, checked, and resumable."""

# Thousands of files: pathlib costs more than the work itself.
# ruff: noqa: PTH100, PTH112, PTH119

from __future__ import annotations

import os

from openpaisdk.errors import NotFoundError, ServerError
from openpaisdk.storage.contract import Crc, Entry, FileSource, readable_name
from openpaisdk.storage.ignore import rules_for
from openpaisdk.storage.local import taken
from openpaisdk.storage.trees import (
    SMALL,
    WORKERS,
    Progress,
    grouped,
    is_folder_there,
    local_files,
    remote_files,
    run_all,
    same_as_local,
    stat_or_none,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from openpaisdk.storage.contract import Storage
    from openpaisdk.storage.trees import Job


def upload(
    store: Storage,
    local: str,
    remote: str,
    *,
    overwrite: bool = False,
    ignore: bool = True,
    workers: int = WORKERS,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Copy a local file or folder; equal files are skipped, different ones need `overwrite`."""
    told = progress or Progress()
    if not os.path.lexists(local):
        raise NotFoundError(f"there is no {local} here", hint=_why_not_here(local))
    if not os.path.isdir(local):
        source = FileSource(local)
        told.files, told.bytes = 1, source.size
        if remote.endswith("/") or is_folder_there(store, remote):
            remote = f"{remote.rstrip('/')}/{readable_name(os.path.basename(local), local)}"
        present = stat_or_none(store, remote)
        _send_one(store, source, remote, present, overwrite, told)
        return told.summary()
    files = list(local_files(local, "", rules_for(os.path.abspath(local)) if ignore else None))
    present_files = dict(remote_files(store, remote))
    told.files, told.bytes = len(files), sum(source.size for _, source in files)
    store.mkdir(remote)
    todo: list[tuple[str, FileSource]] = []
    for name, source in files:
        there = present_files.get(name)
        if there is None or not same_as_local(store, f"{remote.rstrip('/')}/{name}", source, there):
            if there is not None and not overwrite:
                raise taken(f"{remote.rstrip('/')}/{name}")
            todo.append((name, source))
        else:
            told.add(source.size, 1, skipped=True)
    run_all(_upload_jobs(store, remote, todo, overwrite, told), workers, told)
    return told.summary()


def _why_not_here(local: str) -> str:
    if set(local) & set("*?["):
        return "the pattern fits nothing here; name one file or folder"
    return "check the name, and the folder you are in"


def _upload_jobs(
    store: Storage, remote: str, todo: list[tuple[str, FileSource]], overwrite: bool, told: Progress
) -> Iterator[Job]:
    packs = hasattr(store, "write_many") and getattr(store, "ours", False)
    small = [item for item in todo if packs and item[1].size <= SMALL]
    large = [item for item in todo if not packs or item[1].size > SMALL]
    for name, source in large:
        target = f"{remote.rstrip('/')}/{name}"
        yield lambda source=source, target=target: _send(store, source, target, overwrite, told)  # type: ignore[misc]
    for group in grouped(small, lambda item: item[1].size):
        yield lambda group=group: _send_pack(store, remote, group, told)  # type: ignore[misc]


def _send_pack(store: Any, remote: str, group: list[tuple[str, FileSource]], told: Progress) -> None:
    # The decision what may be replaced was made before; repeating a pack that half arrived must not fail.
    contents = {name: b"".join(source.blocks(0, source.size)) for name, source in group}
    store.write_many(remote, contents, overwrite=True)
    told.add(sum(map(len, contents.values())), len(group))


def _send_one(
    store: Storage, source: FileSource, target: str, present: Entry | None, overwrite: bool, told: Progress
) -> None:
    if present is not None and present.kind == "file" and same_as_local(store, target, source, present):
        told.add(source.size, 1, skipped=True)
        return
    _send(store, source, target, overwrite, told)


class _Counted(FileSource):
    """A local file whose reading is progress, and whose CRC-32 is known at the end."""

    def __init__(self, source: FileSource, told: Progress) -> None:
        super().__init__(source.path)
        self._told = told
        self._digest = Crc()
        self._hashed = 0

    def blocks(self, offset: int, end: int) -> Iterator[bytes]:
        """The bytes from `offset` to `end`."""
        for block in super().blocks(offset, end):
            self._told.go_on()
            if offset == self._hashed:
                self._digest.update(block)
                self._hashed += len(block)
                self._told.add(len(block))
            offset += len(block)
            yield block

    def digest(self) -> str:
        """CRC-32 of the whole file, reading only what was not sent."""
        for block in super().blocks(self._hashed, self.size):
            self._digest.update(block)
            self._told.add(len(block))
        self._hashed = self.size
        return self._digest.hexdigest()


def _send(store: Storage, source: FileSource, target: str, overwrite: bool, told: Progress) -> None:
    counted = _Counted(source, told)
    store.write(target, counted, overwrite=overwrite)
    stored = store.checksum(target, "crc32")
    if stored is not None and stored != counted.digest():
        store.remove(target)
        raise ServerError(f"{target} arrived damaged and was deleted", hint="send it again")
    store.set_modified(target, source.modified)
    told.add(0, 1)
