"""One WebHDFS request: whose it is, which path and options it names, and how it is answered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Message, Receive, Scope, Send

from openpaisdk.errors import AccessError, LoginError, UsageError
from openpaisdk.server.files.operations import Files
from openpaisdk.server.files.paths import Place

PREFIX = "/webhdfs/v1"
_DRAINED = 16 << 20
TEXT = [(b"content-type", b"application/json")]
BYTES = [(b"content-type", b"application/octet-stream")]


class Exchange:
    """One request: whose it is, which path and which options, and how to answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self.body_ended = False
        self.send = send
        self.answered = False
        self.closing = False  # the connection is of no use after the answer
        self.after_answer: Callable[[], Awaitable[None]] | None = None
        raw = scope["path"]
        below = raw.find(PREFIX)
        self.path = (raw[below + len(PREFIX) :] if below >= 0 else raw) or "/"
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self.options = {name.lower(): value for name, value in pairs}
        self.user = ""
        self.admin = False

    async def receive(self) -> Message:
        """The next piece of the request, remembering whether it was the last."""
        message = await self._receive()
        self.body_ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Read what is left of a small body, because a sender that cannot finish never sees the answer."""
        left = _DRAINED
        while not self.body_ended and left > 0:
            left -= len((await self.receive()).get("body", b""))

    def header(self, name: bytes) -> str | None:
        """One request header."""
        for found, value in self.scope["headers"]:
            if found == name:
                return str(value.decode("latin-1"))
        return None

    def flag(self, name: str, default: bool = False) -> bool:
        """A true-or-false option."""
        return bool(self.options.get(name, str(default)).lower() == "true")

    def number(self, name: str, default: int) -> int:
        """A whole-number option."""
        text = self.options.get(name, "")
        try:
            return int(text) if text not in ("", "null") else default
        except ValueError:
            raise UsageError(f"The option {name} wants a whole number, not {text!r}.") from None

    async def start(self, status: int, headers: list[tuple[bytes, bytes]], size: int | None) -> None:
        """Send the head of the answer; without a size the body goes out in chunks."""
        self.answered = True
        more = [] if size is None else [(b"content-length", str(size).encode())]
        if self.closing:
            more.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})

    async def answer(
        self, data: Any = None, *, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        """Send JSON, or nothing but the head."""
        body = b"" if data is None else json.dumps(data).encode()
        kind = BYTES if data is None else TEXT
        await self.start(status, [*kind, *(headers or [])], len(body))
        await self.send({"type": "http.response.body", "body": b"" if self.is_head else body})

    @property
    def is_head(self) -> bool:
        """Whether the contents are not wanted."""
        return bool(self.scope["method"] == "HEAD")

    def data_address(self) -> str:
        """Where the contents should be sent in the second step."""
        host = self.header(b"host") or "localhost"
        raw = self.scope.get("raw_path") or self.scope["path"].encode()
        query = self.scope["query_string"].decode("latin-1")
        kept = "&".join(part for part in query.split("&") if not part.lower().startswith("noredirect="))
        return f"{self.scope.get('scheme', 'http')}://{host}{raw.decode('latin-1')}?{kept}&data=true"

    def place(self, files: Files, path: str | None = None, *, follow: bool = True) -> Place:
        """The place of the request's path, or of another one, for the person who asks."""
        return files.area.place(path or self.path, self.user, admin=self.admin, follow=follow)


async def identify(services: Any, exchange: Exchange) -> None:
    """Find whose request it is: by a bearer token, or the same as `delegation=`; `user.name` is no proof."""
    delegation = exchange.options.get("delegation")
    header = f"Bearer {delegation}" if delegation else exchange.header(b"authorization")
    if not header:
        raise LoginError(
            "WebHDFS needs a token: none was sent.",
            hint="Send `Authorization: Bearer TOKEN` or the option delegation=TOKEN.",
        )
    found = services.accounts.authenticate(header)
    caller = await found if isinstance(found, Awaitable) else found
    exchange.user, exchange.admin = caller.name, caller.admin
    wanted = exchange.options.get("doas") or exchange.options.get("user.name") or caller.name
    if wanted != caller.name:
        if not caller.admin:
            raise AccessError(f"{caller.name} may not act as {wanted}.", hint=f"Say user.name={caller.name}.")
        exchange.user = wanted
