"""Contents between a connection and a file: big blocks, disk work in threads, no whole file in memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from openpaisdk.errors import UsageError

BLOCK = 1 << 20
_GIVEN = 256 << 10
_SLOW_SECONDS = 0.01
T = TypeVar("T")


class Sink(Protocol):
    """Where contents go: `write` blocks and may raise."""

    def write(self, chunks: Sequence[bytes | memoryview]) -> None: ...


class Disk:
    """The threads that touch the disk, so that a slow disk never stops the server from answering."""

    def __init__(self, threads: int = 8) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="files")

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """Run a blocking call in a thread; who is told to stop still waits for it, and closes files then."""
        running = asyncio.get_running_loop().run_in_executor(self._pool, call, *args)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                try:
                    await asyncio.wait([running])
                except asyncio.CancelledError:
                    continue  # a server that stops says so more than once
            if not running.cancelled():
                running.exception()
            raise

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
    """Write a body into a sink, receiving more while the last piece is written."""
    total = 0
    writing: asyncio.Future[None] | None = None
    try:
        async for piece in pieces:
            if writing is not None:
                await writing
            writing = asyncio.ensure_future(disk.run(sink.write, [piece]))
            total += len(piece)
    finally:
        if writing is not None:
            await writing
    if expected is not None and total != expected:
        raise UsageError(f"{expected:,} bytes were announced and {total:,} arrived.")
    return total


async def give(disk: Disk, fd: int, start: int, size: int, receive: Receive, send: Send) -> None:
    """Send a part of a file, as long as somebody is there to receive it."""
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await _give(disk, fd, start, size, gone, send)
    finally:
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _give(disk: Disk, fd: int, start: int, size: int, gone: asyncio.Future[None], send: Send) -> None:
    """At once while the file is in memory, by threads as soon as the disk is slow."""
    end = start + size
    threads = False
    while start < end:
        count = min(_GIVEN, end - start)
        begun = time.perf_counter()
        block = await disk.run(os.pread, fd, count, start) if threads else os.pread(fd, count, start)
        threads = time.perf_counter() - begun > _SLOW_SECONDS
        start += len(block)
        if not block:
            # The file was cut shorter while it was read: closing early tells the receiver.
            raise ConnectionAbortedError("the file became shorter while it was read")
        await send({"type": "http.response.body", "body": block, "more_body": start < end})
        if start % BLOCK == 0:
            await asyncio.sleep(0)  # sending does not fail when the receiver went away
            if gone.done():
                raise ConnectionAbortedError("the receiver went away in mid-transfer")


def content_length(scope: Scope) -> int | None:
    """The announced size of a request body."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return None
