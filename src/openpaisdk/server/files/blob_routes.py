"""The REST side of code by content: what is missing, packs of small blobs, large ones, and manifests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import FileResponse

from openpaisdk.errors import ConflictError, NotFoundError
from openpaisdk.server.files.blobs import BlobStore, require_sha256
from openpaisdk.server.files.packs import Unframing
from openpaisdk.server.files.streaming import Disk, content_length, take
from openpaisdk.server.http import Call, endpoint

_LIST_LIMIT = 64 << 20
_disk = Disk(4)


class Received(msgspec.Struct):
    """What arrived."""

    files: int
    bytes: int


class BlobQuery(msgspec.Struct):
    """Options of an upload."""

    manifest: bool = False


def _store(call: Call) -> BlobStore:
    return BlobStore(f"{call.services.settings.data_dir}/files", call.caller.name)


@endpoint("POST", "/api/v2/blobs/missing", body=list[str], limit=_LIST_LIMIT, returns=list[str])
async def missing(call: Call) -> list[str]:
    """Of these SHA-256s, those that the caller has to send."""
    return await _disk.run(_store(call).missing, call.body)


@endpoint("POST", "/api/v2/blobs/pack", status=201, returns=Received, errors=(400,))
async def receive_pack(call: Call) -> Received:
    """Take many small blobs in one body, each named by its SHA-256; `manifest:SHA256` may come last."""
    store = _store(call)
    unframing = Unframing(store.begin)
    try:
        await take(_disk, _pieces(call), unframing, content_length(call.request.scope))
        unframing.finish()
    finally:
        await _disk.run(unframing.discard)
    return Received(unframing.files, unframing.bytes)


@endpoint("PUT", "/api/v2/blobs/{sha256}", status=201, query=BlobQuery, returns=Received, errors=(400, 409))
async def receive_blob(call: Call) -> Received:
    """Take one blob, or with `manifest=true` the list of a whole tree."""
    store, sha256 = _store(call), require_sha256(call.path["sha256"])
    expected = content_length(call.request.scope)
    if call.query.manifest:
        text = await _manifest_text(call)
        await _disk.run(store.add_manifest, sha256, text)
        return Received(1, len(text))
    blob = store.receive(sha256)
    try:
        size = await take(_disk, _pieces(call), blob, expected)
        await _disk.run(blob.commit)
    finally:
        await _disk.run(blob.discard)
    return Received(1, size)


@endpoint(
    "GET", "/api/v2/blobs/{sha256}", query=BlobQuery, media="application/octet-stream", errors=(400, 404)
)
async def read_blob(call: Call) -> Any:
    """The contents of one blob or manifest of the caller."""
    store, sha256 = _store(call), require_sha256(call.path["sha256"])
    path = str(store.manifests / sha256) if call.query.manifest else store.path(sha256)
    known = store.has_manifest(sha256) if call.query.manifest else store.has(sha256)
    if not known:
        raise NotFoundError(f"There is no blob {sha256}.")
    return FileResponse(path, media_type="application/octet-stream")


async def _pieces(call: Call) -> AsyncIterator[bytes]:
    async for piece in call.request.stream():
        if piece:
            yield piece


async def _manifest_text(call: Call) -> bytes:
    text = bytearray()
    async for piece in call.request.stream():
        text += piece
        if len(text) > _LIST_LIMIT:
            raise ConflictError(
                f"The manifest is larger than {_LIST_LIMIT:,} bytes.", hint="Ship fewer files."
            )
    return bytes(text)


ENDPOINTS = [missing, receive_pack, receive_blob, read_blob]
