"""HTTP connections whose requests may read a large body straight from the socket, past the parser."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from starlette.types import Scope

# Of a body that goes through the parser; uvicorn's own 64 kB, for which it has no option, slow it down.
_READ_AHEAD = 1 << 20
_TAKE_OVER = "openpai.take_over"


class TakenOver(NamedTuple):
    """A socket that only the request still reads, and the part of its body that had been read before."""

    fd: int
    body: bytes


def take_over(scope: Scope) -> TakenOver | None:
    """Let a request read the rest of its body itself; its answer has to close the connection.

    None where that cannot be: the whole body is here, TLS is in between, or another parser is at work.
    """
    offered = scope.get("extensions", {}).get(_TAKE_OVER)
    return offered(scope) if offered is not None else None


def http_protocol() -> Any:
    """What uvicorn speaks HTTP with: its fast parser where that is installed, with the offer above."""
    try:
        from uvicorn.protocols.http import httptools_impl
    except ImportError:
        return "auto"
    vars(httptools_impl)["HIGH_WATER_LIMIT"] = _READ_AHEAD

    class Connection(httptools_impl.HttpToolsProtocol):
        def on_message_begin(self) -> None:
            super().on_message_begin()
            scope: Scope = self.scope  # type: ignore[assignment]
            scope["extensions"] = {_TAKE_OVER: partial(_stop_parsing, self)}

    return Connection


def _stop_parsing(connection: Any, scope: Scope) -> TakenOver | None:
    cycle, transport = connection.cycle, connection.transport
    encrypted = transport.get_extra_info("sslcontext") is not None
    # A request that was sent behind this one has a cycle of its own already.
    if encrypted or transport.is_closing() or cycle.scope["headers"] is not scope["headers"]:
        return None
    if not cycle.more_body:
        return None
    connection.flow.pause_reading()
    body, cycle.body = bytes(cycle.body), type(cycle.body)()
    cycle.keep_alive = False
    return TakenOver(transport.get_extra_info("socket").fileno(), body)
