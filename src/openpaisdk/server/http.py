"""What an endpoint is: its declaration, the call it gets, and how bodies and queries are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from openpaisdk.errors import UsageError
from openpaisdk.server.auth import ANONYMOUS, Caller, Guard

__all__ = [
    "ANONYMOUS",
    "BODY_LIMIT",
    "EXTENSIONS",
    "Answer",
    "Call",
    "Caller",
    "Endpoint",
    "Message",
    "TooLarge",
    "endpoint",
    "read_body",
    "read_query",
]

BODY_LIMIT = 100 * 1024
EXTENSIONS = ("submit-key", "wait", "follow", "delete", "why", "exec", "files", "signal")

Handler = Callable[["Call"], Awaitable[Any]]


class Message(msgspec.Struct):
    """The answer of a call that changes something."""

    message: str


class Call:
    """One request on its way through an endpoint."""

    __slots__ = ("body", "caller", "path", "query", "request", "services")

    def __init__(self, request: Request, services: Any, caller: Caller, path: dict[str, str]) -> None:
        self.request = request
        self.services = services
        self.caller = caller
        self.path = path
        self.body: Any = None
        self.query: Any = None


class Answer:
    """Plain data with a status or headers other than the endpoint's own."""

    __slots__ = ("data", "headers", "status")

    def __init__(self, data: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.data = data
        self.status = status
        self.headers = headers or {}


class TooLarge(Exception):
    """The body is over its limit; answered with 413 and no error code, as OpenPAI does."""


class Endpoint:
    """A handler with everything the router, the guards and the OpenAPI description need to know.

    `body` is a Struct (JSON as application/json or text/*, or a form), `str` (text/* only, None for other
    types), `bytes` (anything) or None (not read: the handler may stream `call.request`). `rate` names a
    limiter of its own ("list" or "submit"). `errors` lists statuses beyond those that follow from guard,
    path, body and query. For the OpenAPI description, `media` is the type of the answer, or of a `str` body,
    and `headers` are those that the handler reads; one that reads Range may answer with 206.
    """

    __slots__ = (
        "body",
        "errors",
        "guard",
        "handler",
        "headers",
        "json",
        "limit",
        "media",
        "method",
        "paths",
        "query",
        "rate",
        "returns",
        "status",
        "summary",
    )

    def __init__(
        self,
        handler: Handler,
        method: str,
        paths: tuple[str, ...],
        *,
        guard: Guard,
        body: Any,
        query: Any,
        status: int,
        summary: str,
        returns: Any,
        rate: str | None,
        errors: tuple[int, ...],
        limit: int,
        media: str,
        headers: dict[str, str],
    ) -> None:
        self.handler = handler
        self.method = method
        self.paths = paths
        self.guard = guard
        self.body = body
        self.query = query
        self.status = status
        self.summary = summary
        self.returns = returns
        self.rate = rate
        self.errors = errors
        self.limit = limit
        self.media = media
        self.headers = headers
        self.json = None if body in (None, str, bytes) else msgspec.json.Decoder(body, strict=False)

    def __call__(self, call: Call) -> Awaitable[Any]:
        return self.handler(call)

    def __repr__(self) -> str:
        return f"<Endpoint {self.method} {self.paths[0]}>"


def endpoint(
    method: str,
    path: str | tuple[str, ...],
    *,
    guard: Guard = "check",
    body: Any = None,
    query: Any = None,
    status: int = 200,
    summary: str = "",
    returns: Any = None,
    rate: str | None = None,
    errors: tuple[int, ...] = (),
    limit: int = BODY_LIMIT,
    media: str = "application/json",
    headers: dict[str, str] | None = None,
) -> Callable[[Handler], Endpoint]:
    """Declare a handler; several paths are the same endpoint, `*` as method means any."""
    paths = (path,) if isinstance(path, str) else path

    def declare(handler: Handler) -> Endpoint:
        words = summary or (handler.__doc__ or "").strip().split("\n")[0]
        return Endpoint(
            handler,
            method,
            paths,
            guard=guard,
            body=body,
            query=query,
            status=status,
            summary=words,
            returns=returns,
            rate=rate,
            errors=errors,
            limit=limit,
            media=media,
            headers=headers or {},
        )

    return declare


def read_query(kind: Any, raw: bytes) -> Any:
    """Convert a query string into its Struct; unknown names are ignored, of repeated ones the last counts."""
    values = dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"The query is not valid: {error}.") from error


async def read_body(found: Endpoint, request: Request) -> Any:
    """Read and convert a request body as the endpoint declares it."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    raw = await _read_limited(request, found.limit)
    if found.body is bytes:
        return raw
    if found.body is str:
        return _text(raw) if content_type.startswith("text/") else None
    try:
        if content_type == "application/x-www-form-urlencoded":
            fields = dict(parse_qsl(_text(raw), keep_blank_values=True))
            return msgspec.convert(fields, found.body, strict=False)
        return found.json.decode(raw if raw.strip() else b"{}")  # type: ignore[union-attr]
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"The request body is not valid: {error}.") from error


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"The request body is not UTF-8 text: {error}.") from error


async def _read_limited(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise TooLarge(limit)
        chunks.append(chunk)
    return b"".join(chunks)
