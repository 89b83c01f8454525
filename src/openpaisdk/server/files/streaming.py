"""Contents between a connection and a file: big blocks, disk work in threads, no whole file in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from openpaisdk.errors import UsageError

BLOCK = 1 << 20
_MOST_PIECES = 512
T = TypeVar("T")


class Sink(Protocol):
    """Where contents go: `write` blocks and may raise."""

    def write(self, chunks: Sequence[bytes]) -> None: ...


class Disk:
    """The threads that touch the disk, so that a slow disk never stops the server from answering."""

    def __init__(self, threads: int = 8) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="files")

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """Run a blocking call in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *args)

    def close(self) -> None:
        """End the threads once their work is done."""
        self._pool.shutdown(wait=True)


async def body_of(receive: Receive) -> AsyncIterator[bytes]:
    """The pieces of a request body; a connection lost in the middle raises."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the sender went away in mid-transfer")
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


async def take(disk: Disk, pieces: AsyncIterator[bytes], sink: Sink, expected: int | None) -> int:
    """Write a body into a sink in large blocks, receiving the next one while the last is written."""
    total = gathered = 0
    block: list[bytes] = []
    writing: asyncio.Future[None] | None = None
    try:
        async for piece in pieces:
            block.append(piece)
            gathered += len(piece)
            if gathered >= BLOCK or len(block) >= _MOST_PIECES:
                if writing is not None:
                    await writing
                writing = asyncio.ensure_future(disk.run(sink.write, block))
                total, gathered, block = total + gathered, 0, []
    finally:
        if writing is not None:
            await writing
    if block:
        await disk.run(sink.write, block)
    total += gathered
    if expected is not None and total != expected:
        raise UsageError(f"{expected:,} bytes were announced and {total:,} arrived.")
    return total


async def give(disk: Disk, fd: int, start: int, size: int, send: Send) -> None:
    """Send a part of a file, reading the next block while the last is on its way."""
    end = start + size
    coming = asyncio.ensure_future(disk.run(os.pread, fd, min(BLOCK, end - start), start))
    try:
        while start < end:
            block = await coming
            start += len(block)
            if not block:
                # The file was cut shorter while it was read: closing early tells the receiver.
                raise ConnectionAbortedError("the file became shorter while it was read")
            if start < end:
                coming = asyncio.ensure_future(disk.run(os.pread, fd, min(BLOCK, end - start), start))
            await send({"type": "http.response.body", "body": block, "more_body": start < end})
    finally:
        await asyncio.gather(coming, return_exceptions=True)


def content_length(scope: Scope) -> int | None:
    """The announced size of a request body."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return None
