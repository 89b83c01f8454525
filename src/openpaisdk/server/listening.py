"""The HTTP listener: uvicorn on a socket of ours, without its ticking: a server at rest uses no CPU."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import AbstractContextManager, nullcontext
from email.utils import formatdate

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openpaisdk.errors import ConfigError
from openpaisdk.server.connections import http_protocol
from openpaisdk.server.settings import Settings

GRACEFUL_SECONDS = 3
DROP_SECONDS = 0.05
BACKLOG = 4096  # connections that wait while a burst of submissions is taken in


class Listener(uvicorn.Server):
    """Serves until `stop`; leaves signals to the program and the Date header to `Dated`."""

    def __init__(self, app: ASGIApp, chosen: Settings) -> None:
        self._stopped = asyncio.Event()
        config = uvicorn.Config(
            Dated(app),
            http=http_protocol(),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
            backlog=BACKLOG,
            ssl_certfile=str(chosen.tls_cert) if chosen.tls_cert else None,
            ssl_keyfile=str(chosen.tls_key) if chosen.tls_key else None,
        )
        try:
            config.load()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"cannot use the certificate {chosen.tls_cert} with the key {chosen.tls_key}: {error}",
                hint="--tls-cert and --tls-key want PEM files that belong together",
            ) from error
        super().__init__(config)

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()

    async def main_loop(self) -> None:
        await self._stopped.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        dropping = asyncio.ensure_future(self._drop_answered()) if self.config.is_ssl else None
        await super().shutdown(sockets)
        if dropping is not None:
            dropping.cancel()

    async def _drop_answered(self) -> None:
        """Closing over TLS waits for the other side to say goodbye, which clients that are at rest do not."""
        while True:
            for connection in list(self.server_state.connections):
                cycle = getattr(connection, "cycle", None)
                transport: asyncio.Transport | None = getattr(connection, "transport", None)
                answered = cycle is None or cycle.response_complete
                if transport is not None and answered and not transport.get_write_buffer_size():
                    transport.abort()
            await asyncio.sleep(DROP_SECONDS)

    def stop(self) -> None:
        self.should_exit = True
        self._stopped.set()


class Dated:
    """Adds the Date header; the text is made once a second, and only when somebody asks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._second = 0
        self._header = (b"date", b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], self._now()]
            await send(message)

        await self._app(scope, receive, dated)

    def _now(self) -> tuple[bytes, bytes]:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._header = (b"date", formatdate(second, usegmt=True).encode())
        return self._header


def bind(chosen: Settings) -> socket.socket:
    """The socket, bound before anything else is done, so that a taken port is told at once."""
    host = chosen.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm only where the protocol is named; answers wait 40 ms otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, chosen.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {chosen.host}:{chosen.port}: {error.strerror}",
            hint="choose another --port or --host",
        ) from error
    return listener


def address_of(chosen: Settings, listener: socket.socket) -> str:
    """The address at which this machine reaches the server."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - what was asked for
    host = everywhere.get(chosen.host, chosen.host)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{chosen.scheme}://{host}:{listener.getsockname()[1]}"
