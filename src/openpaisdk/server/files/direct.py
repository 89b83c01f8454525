"""A large body straight from its socket into a file: no parser, no copies, and the event loop left free."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from collections.abc import AsyncIterator
from functools import partial

from openpaisdk.server.connections import take_over
from openpaisdk.server.files.exchange import Exchange
from openpaisdk.server.files.streaming import BLOCK, Disk, Sink, body_of, content_length, take

LARGE = 4 << 20
# A thread that takes in a body lets other work go first after this long, and sooner when nothing comes.
_TURN_SECONDS = 0.02
_PATIENCE_MS = 5
_LINGER_SECONDS = 5


async def take_body(disk: Disk, exchange: Exchange, sink: Sink) -> None:
    """Write a request's body into a sink, the quickest way there is for it."""
    expected = content_length(exchange.scope)
    pieces = body_of(exchange.receive)
    if expected is None or expected < LARGE:
        await take(disk, pieces, sink, expected)
        return
    first = await anext(pieces, b"")  # also tells a sender to go on that asked before sending (Expect)
    taken = take_over(exchange.scope)
    if taken is None:
        await take(disk, _chained(first, pieces), sink, expected)
        return
    exchange.body_ended = exchange.closing = True
    rest = _SocketBody(taken.fd, expected - len(first) - len(taken.body))
    try:
        await disk.run(sink.write, [first, taken.body])
        await rest.into(disk, sink)
    except ConnectionError:
        rest.close()
        await exchange.receive()  # nobody watched the connection meanwhile: let it notice that it is gone
        raise
    except Exception:
        exchange.after_answer = partial(rest.linger, disk)
        raise
    except BaseException:
        rest.close()
        raise
    rest.close()


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


class _Nowhere:
    def write(self, chunks: object) -> None:
        pass


class _SocketBody:
    """What is still to come of a body."""

    def __init__(self, fd: int, size: int) -> None:
        self._left = size
        # A descriptor of its own: the connection may be closed while a thread reads.
        self._socket = socket.socket(fileno=os.dup(fd))
        self._socket.setblocking(False)
        self._buffer = memoryview(bytearray(BLOCK))

    async def into(self, disk: Disk, sink: Sink) -> None:
        """Move it into a sink."""
        while self._left:
            await disk.run(self._turn, sink)
            if self._left:
                await self._readable()

    def _turn(self, sink: Sink) -> None:
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        end = time.monotonic() + _TURN_SECONDS
        while self._left and time.monotonic() < end:
            try:
                count = self._socket.recv_into(self._buffer[: self._left])
            except BlockingIOError:
                if not waiting.poll(_PATIENCE_MS):
                    return
                continue
            if not count:
                raise ConnectionResetError("the sender went away in mid-transfer")
            self._left -= count
            sink.write([self._buffer[:count]])

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        loop.add_reader(self._socket, came.set)
        try:
            await came.wait()
        finally:
            loop.remove_reader(self._socket)

    async def linger(self, disk: Disk) -> None:
        """Take in what a sender sends that has not seen the answer yet: closing at once would destroy it."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
            await asyncio.wait_for(self.into(disk, _Nowhere()), _LINGER_SECONDS)
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
