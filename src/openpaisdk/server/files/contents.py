"""WebHDFS operations that move contents: OPEN, CREATE, APPEND, and packs of small files (PACK, UNPACK)."""

from __future__ import annotations

import json
import os
from urllib.parse import quote

from openpaisdk.errors import UsageError
from openpaisdk.server.files import packs
from openpaisdk.server.files.direct import take_body
from openpaisdk.server.files.exchange import BYTES, Exchange
from openpaisdk.server.files.incoming import Appending, NewFile, require_free
from openpaisdk.server.files.operations import Files
from openpaisdk.server.files.streaming import Disk, body_of, content_length, give, take

_MOST_NAMES = 8 << 20


async def open_file(files: Files, disk: Disk, exchange: Exchange) -> None:
    """Read a file, or a part of it."""
    start, wanted = exchange.number("offset", 0), exchange.number("length", -1)
    fd, size = await disk.run(files.open_for_reading, exchange.place(files))
    try:
        if not 0 <= start <= size:
            raise UsageError(f"Offset={start} out of the range [0, {size}]; OPEN, path={exchange.path}")
        length = size - start if wanted < 0 else min(wanted, size - start)
        await exchange.start(200, BYTES, length)
        if exchange.is_head or not length:
            await exchange.send({"type": "http.response.body", "body": b""})
        else:
            await give(disk, fd, start, length, exchange.receive, exchange.send)
    finally:
        os.close(fd)


async def _redirected(files: Files, exchange: Exchange) -> bool:
    """The first of two steps: refuse, or tell where the contents should go, before any are sent."""
    if exchange.flag("data"):
        return False
    place = exchange.place(files)
    files.admit(place, exchange.number("size", 1))
    if exchange.options["op"].upper() == "CREATE":
        require_free(files, place, exchange.flag("overwrite"))
    address = exchange.data_address()
    if exchange.flag("noredirect"):
        await exchange.answer({"Location": address})
    else:
        await exchange.answer(status=307, headers=[(b"location", address.encode("latin-1"))])
    return True


async def create_file(files: Files, disk: Disk, exchange: Exchange) -> None:
    """Make a file: nothing is to be seen of it before it is whole."""
    place = exchange.place(files)
    overwrite = exchange.flag("overwrite")
    if await _redirected(files, exchange):
        return
    await _receive(disk, exchange, await disk.run(lambda: NewFile(files, place, overwrite=overwrite)))
    location = f"webhdfs://{exchange.header(b'host') or ''}{quote(place.logical)}"
    await exchange.answer(status=201, headers=[(b"location", location.encode())])


async def append_file(files: Files, disk: Disk, exchange: Exchange) -> None:
    """Add to the end of a file."""
    place = exchange.place(files)
    if await _redirected(files, exchange):
        return
    position = exchange.number("position", -1)
    await _receive(disk, exchange, await disk.run(lambda: Appending(files, place, position=position)))
    await exchange.answer()


async def _receive(disk: Disk, exchange: Exchange, target: NewFile | Appending) -> None:
    try:
        target.expect(content_length(exchange.scope) or 0)
        await take_body(disk, exchange, target)
        await disk.run(target.commit)
    finally:
        await disk.run(target.discard)


async def unpack(files: Files, disk: Disk, exchange: Exchange) -> None:
    """Make many small files below a folder from one body; each appears whole."""
    place = exchange.place(files)
    unpacking = packs.Unpacking(
        files,
        lambda name: exchange.place(files, f"{place.logical}/{name}"),
        overwrite=exchange.flag("overwrite"),
    )
    try:
        await take(disk, body_of(exchange.receive), unpacking, content_length(exchange.scope))
        unpacking.finish()
    finally:
        await disk.run(unpacking.discard)
    await exchange.answer({"files": unpacking.files, "bytes": unpacking.bytes, "crc32": unpacking.checksums})


async def pack(files: Files, disk: Disk, exchange: Exchange) -> None:
    """Many small files of a folder in one body; a name that is not a readable file is left out."""
    raw = bytearray()
    async for piece in body_of(exchange.receive):
        raw += piece
        if len(raw) > _MOST_NAMES:
            raise UsageError("PACK was asked for too many files at once.", hint="Ask in several requests.")
    try:
        names = json.loads(raw)
    except ValueError as error:
        raise UsageError(f"PACK wants a JSON list of file names: {error}.") from None
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise UsageError("PACK wants a JSON list of file names.")
    folder = exchange.place(files).logical
    reading = packs.Reading(files, lambda name: exchange.place(files, f"{folder}/{name}"), names)
    await exchange.start(200, BYTES, None)
    while block := await disk.run(reading.next_block):
        await exchange.send({"type": "http.response.body", "body": block, "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b""})
