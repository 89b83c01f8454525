"""A client that calls an ASGI application directly, for tests without sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote, urlencode


class Reply:
    """What came back."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.raw_headers = headers
        self.headers = {name.decode().lower(): value.decode("latin-1") for name, value in headers}
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        return self.json().get("code")


class Client:
    """Requests on one event loop of its own; `token` is sent where no other Authorization is given."""

    def __init__(
        self, app: Any, token: str | None = None, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.app = app
        self.token = token
        self.loop = loop or asyncio.new_event_loop()

    def acting_as(self, token: str | None) -> Client:
        return Client(self.app, token, self.loop)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def close(self) -> None:
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def get(self, path: str, **options: Any) -> Reply:
        return self.request("GET", path, **options)

    def post(self, path: str, data: Any = None, **options: Any) -> Reply:
        return self.request("POST", path, data=data, **options)

    def put(self, path: str, data: Any = None, **options: Any) -> Reply:
        return self.request("PUT", path, data=data, **options)

    def delete(self, path: str, data: Any = None, **options: Any) -> Reply:
        return self.request("DELETE", path, data=data, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        data: Any = None,
        body: bytes | None = None,
        form: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        client: str = "192.0.2.1",
    ) -> Reply:
        """Send `data` as JSON, `form` as a form, or `body` as it is with the headers given."""
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        if self.token and "authorization" not in sent:
            sent["authorization"] = f"Bearer {self.token}"
        if data is not None:
            body = json.dumps(data).encode()
            sent.setdefault("content-type", "application/json")
        if form is not None:
            body = urlencode(form).encode()
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
        return self.run(self._exchange(method, path, sent, body or b"", client))

    async def _exchange(
        self, method: str, path: str, headers: dict[str, str], body: bytes, client: str
    ) -> Reply:
        raw, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": raw,
            "raw_path": quote(raw, safe="/%~").encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": (client, 1234),
            "server": ("127.0.0.1", 80),
        }
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not incoming:
                await asyncio.Event().wait()  # this client stays to the end
            return incoming.pop(0)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start = sent[0]
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(start["status"], list(start["headers"]), content)
