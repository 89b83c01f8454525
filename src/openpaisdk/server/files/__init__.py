"""The server's files: homes and a shared area through WebHDFS, and code by content for jobs."""

from __future__ import annotations

from typing import Any

from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openpaisdk.server.files.blob_routes import ENDPOINTS
from openpaisdk.server.files.blobs import lay_out, sweep_all
from openpaisdk.server.files.webhdfs import files_of, webhdfs_app

__all__ = ["ENDPOINTS", "blobs_app", "files_of", "lay_out", "routes", "sweep_all", "webhdfs_app"]


def routes(services: Any) -> list[BaseRoute]:
    """What the server mounts beside its REST endpoints."""
    return [
        Mount("/webhdfs/v1", app=webhdfs_app(services)),
        Mount("/api/v2/blobs", app=blobs_app(services)),
    ]


def blobs_app(services: Any) -> ASGIApp:
    """The blob endpoints as an application of their own, beside those that the server lists itself."""
    from openpaisdk.server.app import _EVERYWHERE, Application

    inner = Application(services, ENDPOINTS)
    added = {name for name, _ in _EVERYWHERE}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def once(message: Message) -> None:
            # The application around this one adds the same headers, and a browser refuses some of them twice.
            if message["type"] == "http.response.start":
                kept = [item for item in message["headers"] if item[0] not in added]
                message = {**message, "headers": kept}
            await send(message)

        await inner(scope, receive, once)

    return app
