"""Sending code to our server by content: what it has is not sent again, small files travel together."""

# ruff: noqa: PTH123

from __future__ import annotations

import json
import os
import struct

from openpaisdk.errors import ConflictError, UsageError
from openpaisdk.workspace.hashes import digests
from openpaisdk.workspace.scan import SourceFile, Sources, is_forbidden, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from openpaisdk.transport import Response

    class Server(Protocol):
        """The part of a cluster that shipping needs."""

        def request(
            self,
            method: str,
            path: str,
            *,
            query: Any = ...,
            headers: Any = ...,
            body: Any = ...,
            stream: Any = ...,
            safe: Any = ...,
        ) -> Response: ...


DEFAULT_LIMIT_MB = 300
MOST_FILES = 100_000
_HEAD = struct.Struct(">IQ")
_SMALL = 256 << 10
_PACK = 8 << 20
_BLOCK = 1 << 20


class Plan:
    """What would be shipped: the manifest with its SHA-256, and the file behind each SHA-256."""

    __slots__ = ("bytes", "contents", "files", "left_out", "manifest", "sha256")

    def __init__(self, sources: Sources, folder: str) -> None:
        found = digests(sources.files.values(), folder)
        entries: list[dict[str, Any]] = []
        self.contents: dict[str, SourceFile] = {}
        for name in sorted(sources.files):
            file = sources.files[name]
            digest = found[file.path]
            entries.append({"path": name, "sha256": digest, "size": file.size, "mode": file.mode})
            self.contents[digest] = file
        entries += [{"path": name, "link": sources.links[name]} for name in sorted(sources.links)]
        entries += [{"path": name, "folder": True} for name in sorted(sources.folders)]
        from hashlib import sha256

        self.manifest = json.dumps(entries, separators=(",", ":")).encode()
        self.sha256 = sha256(self.manifest).hexdigest()
        self.files = len(sources.files)
        self.bytes = sources.size
        self.left_out = sources.left_out


def plan_source(
    paths: Sequence[str],
    *,
    limit_mb: float = DEFAULT_LIMIT_MB,
    cwd: str | None = None,
    instead: Mapping[str, str] | None = None,
) -> Plan | None:
    """Find and hash what goes with a job; None where the current folder is one that is never sent.

    `instead` (name in the job -> file here) adds files and stands in for those found under the same names;
    with it nothing else is sent but what is named.
    """
    here = os.path.abspath(cwd or os.getcwd())  # noqa: PTH100, PTH109
    if not paths and not instead and is_forbidden(here):
        return None
    sources = scan(paths, here) if paths or not instead else Sources()
    for name, path in (instead or {}).items():
        sources.links.pop(name, None)
        sources.files[name] = SourceFile(name, path, os.stat(path))  # noqa: PTH116
    check_limit(sources, limit_mb)
    return Plan(sources, here)


def check_limit(sources: Sources, limit_mb: float) -> None:
    """Refuse more than was agreed to, and name what weighs most."""
    if len(sources.files) > MOST_FILES:
        raise UsageError(
            f"the code has {len(sources.files):,} files; more than {MOST_FILES:,} are not sent",
            hint="name what is not needed in .opaiignore, or send only some folders with -s",
        )
    if sources.size > limit_mb * 1_000_000:
        heavy = ", ".join(f"{file.name} ({show_size(file.size)})" for file in sources.largest())
        raise UsageError(
            f"the code has {show_size(sources.size)} in {len(sources.files):,} files, "
            f"the limit is {limit_mb:g} MB; largest: {heavy}",
            hint="name what is not needed in .opaiignore, or raise the limit with --source-limit MB",
        )


def ship_source(
    cluster: Server,
    paths: Sequence[str] = (),
    *,
    limit_mb: float = DEFAULT_LIMIT_MB,
    cwd: str | None = None,
    instead: Mapping[str, str] | None = None,
    on_plan: Callable[[Plan], Any] | None = None,
    on_sent: Callable[[int, int], Any] | None = None,
) -> dict[str, Any]:
    """Send files, folders or globs (the current folder when none is named) to our server.

    The answer is {"manifest": SHA-256 or None, "files": count, "bytes": size, "sent": bytes, "left_out": []};
    `manifest` is None where nothing is sent (see `plan_source`). `on_plan` hears of it before anything goes
    out, `on_sent` of bytes sent and bytes to send. May be repeated: what arrived is not sent again.
    """
    for attempt in range(3):
        plan = plan_source(paths, limit_mb=limit_mb, cwd=cwd, instead=instead)
        if plan is None:
            return {"manifest": None, "files": 0, "bytes": 0, "sent": 0, "left_out": []}
        if on_plan is not None and attempt == 0:
            on_plan(plan)
        try:
            sent = _send(cluster, plan, on_sent)
        except (ConflictError, UsageError, _Changed):
            # A file that changed between reading and sending is not what was announced: look again.
            if attempt == 2:
                raise
            continue
        return {
            "manifest": plan.sha256,
            "files": plan.files,
            "bytes": plan.bytes,
            "sent": sent,
            "left_out": plan.left_out,
        }
    raise AssertionError("unreachable")


class _Changed(UsageError):
    """A file changed while it was sent."""


def _send(cluster: Server, plan: Plan, on_sent: Callable[[int, int], Any] | None) -> int:
    asked = [plan.sha256] if len(plan.contents) > 1000 else [plan.sha256, *plan.contents]
    missing = missing_of(cluster, asked)
    if plan.sha256 not in missing:
        return 0
    if len(asked) == 1:
        missing = missing_of(cluster, list(plan.contents))
    wanted = [(digest, plan.contents[digest]) for digest in missing if digest in plan.contents]
    total = sum(file.size for _, file in wanted)
    sent = 0
    for digest, file in [item for item in wanted if item[1].size > _SMALL]:
        headers = {"content-length": str(file.size), "content-type": "application/octet-stream"}
        cluster.request("PUT", f"/api/v2/blobs/{digest}", headers=headers, body=_blocks(file))
        sent += file.size
        if on_sent is not None:
            on_sent(sent, total)
    groups = list(_groups([item for item in wanted if item[1].size <= _SMALL])) or [[]]
    for group in groups:
        body = b"".join(framed(digest, _contents(file)) for digest, file in group)
        if group is groups[-1]:
            body += framed(f"manifest:{plan.sha256}", plan.manifest)
        headers = {"content-type": "application/octet-stream"}
        cluster.request("POST", "/api/v2/blobs/pack", headers=headers, body=body, safe=True)
        sent += sum(file.size for _, file in group)
        if on_sent is not None:
            on_sent(sent, total)
    return sent


def missing_of(cluster: Server, wanted: list[str]) -> list[str]:
    body = json.dumps(wanted).encode()
    headers = {"content-type": "application/json"}
    found = cluster.request("POST", "/api/v2/blobs/missing", headers=headers, body=body, safe=True).json()
    return list(found)


def _groups(items: list[tuple[str, SourceFile]]) -> Iterator[list[tuple[str, SourceFile]]]:
    group: list[tuple[str, SourceFile]] = []
    size = 0
    for item in items:
        group.append(item)
        size += item[1].size
        if size >= _PACK:
            yield group
            group, size = [], 0
    if group:
        yield group


def framed(name: str, contents: bytes) -> bytes:
    text = name.encode()
    return _HEAD.pack(len(text), len(contents)) + text + contents


def _contents(file: SourceFile) -> bytes:
    try:
        with open(file.path, "rb") as opened:
            found = opened.read(file.size + 1)
    except OSError as error:
        raise _Changed(f"{file.path} can no longer be read: {error.strerror}") from None
    if len(found) != file.size:
        raise _Changed(f"{file.path} changed while it was sent")
    return found


def _blocks(file: SourceFile) -> Iterator[bytes]:
    left = file.size
    with open(file.path, "rb") as opened:
        while left:
            block = opened.read(min(_BLOCK, left))
            if not block:
                raise _Changed(f"{file.path} became shorter while it was sent")
            left -= len(block)
            yield block


def show_size(size: float) -> str:
    """A size as people read it: 12 kB, 3.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
