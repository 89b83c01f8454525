"""The server's files alone behind a real uvicorn in a thread, with three people who hold tokens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn

from openpaisdk.errors import LoginError
from openpaisdk.server.app import Application
from openpaisdk.server.auth import Caller
from openpaisdk.server.connections import http_protocol
from openpaisdk.server.files import ENDPOINTS, routes

PEOPLE = {
    "ann-token": Caller("ann"),
    "bob-token": Caller("bob"),
    "root-token": Caller("root", admin=True),
}


class Accounts:
    """Knows three tokens."""

    def authenticate(self, header: str | None) -> Caller:
        found = PEOPLE.get((header or "").removeprefix("Bearer "))
        if found is None:
            raise LoginError("Your token is invalid.")
        return found


def make_app(data_dir: Path, **settings: object) -> Application:
    services = SimpleNamespace(
        settings=SimpleNamespace(data_dir=str(data_dir), host="127.0.0.1", **settings), accounts=Accounts()
    )
    return Application(services, ENDPOINTS, routes(services))


@contextmanager
def serving(data_dir: Path, *, listener: dict[str, Any] | None = None, **settings: object) -> Iterator[str]:
    """The address of a server that ends with the block; `listener` changes how uvicorn listens."""
    options = {"http": http_protocol(), "port": 0, "log_level": "warning", "ws": "none", **(listener or {})}
    config = uvicorn.Config(make_app(data_dir, **settings), **options)
    server = uvicorn.Server(config)
    bound = config.bind_socket()
    bound.listen(128)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if config.is_ssl else 'http'}://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        bound.close()
