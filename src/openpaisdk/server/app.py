"""The ASGI application: routing, guards, limits, CORS, ETags and the error envelope."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openpaisdk.errors import NotFoundError, OpenPAIError, RateLimitedError
from openpaisdk.server.auth import ANONYMOUS, enforce
from openpaisdk.server.http import EXTENSIONS, Answer, Call, Endpoint, TooLarge, read_body, read_query
from openpaisdk.server.ratelimit import RateLimits, windows
from openpaisdk.server.routing import Tree, split_path
from openpaisdk.server.settings import is_loopback

log = logging.getLogger(__name__)

ROUTE_MODULES = (
    "info",
    "authn",
    "tokens",
    "users",
    "groups",
    "virtual_clusters",
    "storages",
    "misc",
    "legacy",
    "jobs",
    "attempts",
    "logs",
    "exec",
    "signals",
    "server_status",
)

_JSON = b"application/json; charset=utf-8"
_EVERYWHERE: list[tuple[bytes, bytes]] = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"OpenPAI-Extensions, ETag, Retry-After, Location"),
    (b"openpai-extensions", ",".join(EXTENSIONS).encode()),
    (b"x-content-type-options", b"nosniff"),
]
# Hashing megabytes of a large list costs more than sending it again.
_ETAG_LIMIT = 64 * 1024


def collect_endpoints() -> list[Endpoint]:
    """The endpoints of every module in `routes` and of the file layer, in a fixed order."""
    found: list[Endpoint] = []
    for name in ROUTE_MODULES:
        dotted = f"openpaisdk.server.routes.{name}"
        if find_spec(dotted) is not None:
            found.extend(import_module(dotted).ENDPOINTS)
    found.extend(getattr(_files(), "ENDPOINTS", ()))
    return found


def _files() -> Any:
    dotted = "openpaisdk.server.files"
    return import_module(dotted) if find_spec(dotted) is not None else None


def build_app(services: Any, *, extra_routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The whole HTTP surface of a server; `extra_routes` are tried where no endpoint matches."""
    routes = list(extra_routes)
    if hasattr(_files(), "routes"):
        routes.extend(_files().routes(services))
    return Application(services, collect_endpoints(), routes)


def limits_in_force(settings: Any) -> RateLimits | None:
    """What `settings.rate_limits` says; by default none on loopback and the usual ones elsewhere."""
    chosen = getattr(settings, "rate_limits", None)
    if isinstance(chosen, RateLimits):
        return chosen
    if isinstance(chosen, str):
        return RateLimits.parse(chosen)
    host = getattr(settings, "host", "") or "127.0.0.1"
    return None if is_loopback(host) else RateLimits()


class Application:
    """Answers requests; one instance per server."""

    def __init__(
        self, services: Any, endpoints: Iterable[Endpoint], routes: Sequence[BaseRoute] = ()
    ) -> None:
        self.services = services
        self.endpoints = list(endpoints)
        self._tree: Tree[Endpoint] = Tree()
        for found in self.endpoints:
            for path in found.paths:
                self._tree.add(found.method, path, found)
        self._windows = windows(limits_in_force(getattr(services, "settings", None)))
        self._extra = Router(routes) if routes else None
        self._description: bytes | None = None

    def openapi(self) -> bytes:
        """The OpenAPI description as JSON, worked out when first asked for."""
        if self._description is None:
            from openpaisdk.server.openapi import describe

            self._description = msgspec.json.encode(describe(self.endpoints))
        return self._description

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await _lifespan(receive, send)
        if scope["type"] == "websocket":
            await receive()
            return await send({"type": "websocket.close", "code": 1000})
        scope["app"] = self
        exchange = _Exchange(scope, send)
        try:
            if scope["method"] == "OPTIONS":
                await exchange.preflight()
            else:
                await self._answer(exchange, scope, receive)
        except ClientDisconnect:
            pass
        except TooLarge as error:
            await exchange.json({"message": f"request entity too large: the limit is {error} bytes"}, 413)
        except RecursionError:
            await exchange.json(
                {"code": "InvalidParametersError", "message": "It is nested too deeply."}, 400
            )
        except RateLimitedError as error:
            await exchange.too_many(error)
        except OpenPAIError as error:
            await exchange.json(error.as_dict(), error.http_status)
        except Exception:  # the HTTP edge: log it, answer, carry on
            log.exception("%s %s failed", scope["method"], scope["path"])
            await exchange.json({"code": "UnknownError", "message": "The server failed to answer."}, 500)

    async def _answer(self, exchange: _Exchange, scope: Scope, receive: Receive) -> None:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        parts = split_path(raw.decode("latin-1"))
        if parts and parts[0].lower() == "rest-server":
            del parts[0]
        matched = self._tree.find(scope["method"], parts)
        if matched is None:
            return await self._answer_elsewhere(exchange, scope, receive, parts)
        found, path = matched
        if "api" in self._windows and parts[0].lower() == "api":
            self._count("api", (scope.get("client") or ("",))[0], exchange)
        request = Request(scope, receive)
        caller = ANONYMOUS
        if found.guard != "none":
            caller = self.services.accounts.authenticate(request.headers.get("authorization"))
            enforce(found.guard, caller)
        if found.rate in self._windows:
            self._count(found.rate, caller.name, exchange)
        call = Call(request, self.services, caller, path)
        if found.query is not None:
            call.query = read_query(found.query, scope["query_string"])
        if found.body is not None:
            call.body = await read_body(found, request)
        result = await found.handler(call)
        if isinstance(result, Response):
            await result(scope, receive, exchange.send)
        elif isinstance(result, Answer):
            await exchange.json(result.data, result.status, result.headers)
        else:
            await exchange.json(result, found.status)

    def _count(self, name: str, key: str, exchange: _Exchange) -> None:
        passes, headers = self._windows[name].hit(key)
        exchange.headers.update(headers)
        if not passes:
            raise RateLimitedError("Too many requests, please try again later.", retry_after=60)

    async def _answer_elsewhere(
        self, exchange: _Exchange, scope: Scope, receive: Receive, parts: list[str]
    ) -> None:
        if self._extra is not None:
            path = scope["path"]
            if path.lower().startswith("/rest-server/"):
                path = path[len("/rest-server") :]
            inner = {**scope, "path": path, "root_path": ""}
            if any(route.matches(inner)[0] is not Match.NONE for route in self._extra.routes):
                return await self._extra(inner, receive, exchange.send)
        shown = "/" + "/".join(parts)
        raise NotFoundError(f"API {scope['method']} {shown[:200]} is not found.", code="NoApiError")


class _Exchange:
    """The way back to one client; whatever is sent gets the headers that belong on everything."""

    __slots__ = ("_scope", "_send", "_started", "headers")

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._started = False
        self.headers: dict[bytes, bytes] = {}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            headers = [(name, _one_line(value)) for name, value in message.get("headers", ())]
            message = {**message, "headers": [*headers, *_EVERYWHERE, *self.headers.items()]}
        await self._send(message)

    async def json(self, data: Any, status: int, headers: dict[str, str] | None = None) -> None:
        if self._started:
            return
        body = msgspec.json.encode(data)
        found: list[tuple[bytes, bytes]] = []
        for name, value in (headers or {}).items():
            found.append((name.lower().encode("latin-1"), value.encode("latin-1", "replace")))
        if len(body) <= _ETAG_LIMIT:
            etag = b'W/"%x-%08x"' % (len(body), zlib.crc32(body))
            found.append((b"etag", etag))
            if status == 200 and self._scope["method"] in ("GET", "HEAD") and self._unchanged(etag):
                return await self._finish(304, found, b"")
        found.append((b"content-type", _JSON))
        found.append((b"content-length", b"%d" % len(body)))
        await self._finish(status, found, body)

    async def preflight(self) -> None:
        found = [
            (b"access-control-allow-methods", b"GET,HEAD,PUT,PATCH,POST,DELETE"),
            (b"vary", b"Access-Control-Request-Headers"),
            (b"content-length", b"0"),
        ]
        asked = self._header(b"access-control-request-headers")
        if asked:
            found.append((b"access-control-allow-headers", asked))
        await self._finish(204, found, b"")

    async def too_many(self, error: RateLimitedError) -> None:
        body = error.message.encode()
        found = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % int(error.retry_after or 60)),
        ]
        await self._finish(429, found, body)

    async def _finish(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        if self._scope["method"] == "HEAD":
            body = b""
        await self._send({"type": "http.response.body", "body": body})

    def _unchanged(self, etag: bytes) -> bool:
        wanted = self._header(b"if-none-match")
        return bool(wanted) and (wanted == b"*" or etag in [part.strip() for part in wanted.split(b",")])

    def _header(self, name: bytes) -> bytes:
        found: bytes = next((value for key, value in self._scope["headers"] if key == name), b"")
        return found


def _one_line(value: bytes) -> bytes:
    if b"\r" in value or b"\n" in value:
        return value.replace(b"\r", b" ").replace(b"\n", b" ")
    return value


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
