"""The only HTTP client of the package: kept connections, time limits, streaming and TLS."""

from __future__ import annotations

from _thread import _local as _per_thread  # threading itself takes a tenth of a bare interpreter start

from openpaisdk.errors import ConfigError, UsageError
from openpaisdk.transport.http1 import Connection, NetworkError, describe, show_origin, split_url
from openpaisdk.transport.retry import call_with_retry
from openpaisdk.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Any

    from openpaisdk.transport.http1 import Origin

    Double = Callable[[str, str, dict[str, str], bytes | None], tuple[int, Mapping[str, str], Any]]

__all__ = [
    "NetworkError",
    "Response",
    "Transport",
    "call_with_retry",
    "iter_events",
    "query_string",
    "quote",
    "show_origin",
    "split_url",
]

# Sent a second time when a kept connection turns out to be dead, because doing it twice is doing it once.
_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT_ORIGINS = 8


def quote(text: str, safe: str = "") -> str:
    """Text made fit for a URL, every character but letters, digits, `-._~` and `safe` as %XX."""
    keep = _PLAIN.union(safe.encode())
    return "".join(chr(byte) if byte in keep else f"%{byte:02X}" for byte in text.encode())


def query_string(query: Mapping[str, Any] | None) -> str:
    """`?name=value&...`; None leaves a name out, True is `true`, a list is a comma list."""
    parts = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple, set, frozenset)):
            value = ",".join(map(str, value))
        parts.append(f"{quote(name)}={quote(str(value), ',')}")
    return "?" + "&".join(parts) if parts else ""


class Response:
    """An answer: status, headers by lower-case name, and the body, whole or as it arrives."""

    __slots__ = ("_body", "_chunks", "_connection", "headers", "status", "url")

    def __init__(
        self,
        status: int,
        headers: dict[str, str],
        chunks: Iterator[bytes],
        *,
        url: str = "",
        connection: Connection | None = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self.url = url
        self._chunks = chunks
        self._connection = connection
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The whole body; reads what has not been read yet."""
        if self._body is None:
            self._body = b"".join(self._chunks)
        return self._body

    @property
    def text(self) -> str:
        """The whole body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The whole body as JSON; ValueError where it is something else."""
        import json

        return json.loads(self.body)

    def iter_chunks(self) -> Iterator[bytes]:
        """The body piece by piece as it arrives."""
        return self._chunks if self._body is None else iter((self._body,))

    def close(self) -> None:
        """Give up what has not been read."""
        if self._connection is not None and self._connection.answering:
            self._connection.close()

    def __enter__(self) -> Response:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Kept(_per_thread):
    def __init__(self) -> None:
        self.by_origin: dict[Origin, Connection] = {}


class Transport:
    """Sends requests to one server (or, given a whole URL, to another) and keeps a connection per thread.

    It never repeats what must not happen twice; retries are the caller's, with `call_with_retry`.
    `double` replaces the network in tests: a function of method, url, headers and body that returns status,
    headers and body.
    """

    def __init__(
        self,
        base_uri: str,
        *,
        verify: bool | str = True,
        timeout: float = 30.0,
        double: Double | None = None,
    ) -> None:
        self.origin, path = split_url(base_uri)
        self.base_path = path.partition("?")[0].rstrip("/")
        self.verify = verify
        self.timeout = timeout
        self._double = double
        self._tls: Any = None
        self._kept = _Kept()

    @property
    def base_uri(self) -> str:
        """The address that paths are added to."""
        return show_origin(self.origin) + self.base_path

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
        timeout: float | None = None,
        stream: bool = False,
    ) -> Response:
        """Send one request and return the answer whatever its status; NetworkError where none came.

        `path` is added to the base address unless it is a whole URL. With `stream` the body is left unread.
        `timeout` limits each wait for the network, not the whole exchange.
        """
        if "://" in path:
            origin, target = split_url(path)
        else:
            origin, target = self.origin, self.base_path + path
        added = query_string(query)
        target = (target or "/") + (added.replace("?", "&", 1) if "?" in target else added)
        if any(letter <= " " or letter >= "\x7f" for letter in target):
            target = quote(target, "!#$%&'()*+,/:;=?@[]")
        given = {name.lower(): value for name, value in (headers or {}).items()}
        url = show_origin(origin) + target
        if self._double is not None:
            whole = body if body is None or isinstance(body, bytes) else b"".join(body)
            status, found, answer = self._double(method, url, given, whole)
            chunks = iter((answer,)) if isinstance(answer, bytes) else iter(answer)
            return Response(status, {name.lower(): value for name, value in found.items()}, chunks, url=url)
        return self._exchange(method, origin, target, given, body, timeout or self.timeout, stream, url)

    def _exchange(
        self,
        method: str,
        origin: Origin,
        target: str,
        given: dict[str, str],
        body: bytes | Iterable[bytes] | None,
        timeout: float,
        stream: bool,
        url: str,
    ) -> Response:
        proxy = _proxy(origin)
        chunked = body is not None and not isinstance(body, bytes) and "content-length" not in given
        head = _head(method, origin, url if proxy and origin[0] == "http" else target, given, body, chunked)
        repeatable = method in _REPEATABLE and (body is None or isinstance(body, bytes))
        connection = self._take(origin)
        while True:
            if connection is None:
                connection = Connection(origin, timeout, self._context(origin), proxy)
            try:
                connection.send(head, body, chunked, timeout)
                status, headers, chunks = connection.receive(method)
                break
            except OSError as error:
                connection.close()
                gone = connection.reused and not connection.answering and isinstance(error, ConnectionError)
                if not (gone and repeatable):
                    raise describe(error, origin, sent=True, timeout=timeout) from error
                connection = None
        response = Response(
            status, headers, self._returning(chunks, connection), url=url, connection=connection
        )
        if not stream:
            _ = response.body
        return response

    def _take(self, origin: Origin) -> Connection | None:
        connection = self._kept.by_origin.pop(origin, None)
        if connection is None or connection.usable():
            return connection
        connection.close()
        return None

    def _returning(self, chunks: Iterator[bytes], connection: Connection) -> Iterator[bytes]:
        yield from chunks
        if connection.reusable:
            connection.reused = True
            kept = self._kept.by_origin
            while len(kept) >= _KEPT_ORIGINS:
                kept.pop(next(iter(kept))).close()
            kept[connection.origin] = connection
        else:
            connection.close()

    def _context(self, origin: Origin) -> Any:
        if origin[0] != "https":
            return None
        if self._tls is None:
            import ssl

            try:
                self._tls = ssl.create_default_context(
                    cafile=self.verify if isinstance(self.verify, str) else None
                )
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    f"the CA file {self.verify!r} cannot be used: {error.strerror or error}",
                    hint='"verify" of the cluster names a file with certificates in PEM form',
                ) from error
            if self.verify is False:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE
        return self._tls

    def close(self) -> None:
        """Close the connections that this thread keeps."""
        while self._kept.by_origin:
            self._kept.by_origin.popitem()[1].close()


def _proxy(origin: Origin) -> Origin | None:
    import os

    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from openpaisdk.transport.proxy import proxy_for

    return proxy_for(origin, os.environ)


def _head(
    method: str, origin: Origin, target: str, given: dict[str, str], body: object | None, chunked: bool
) -> bytes:
    scheme, host, port = origin
    place = f"[{host}]" if ":" in host else host
    found = {
        "host": place if port == (443 if scheme == "https" else 80) else f"{place}:{port}",
        "user-agent": f"openpaisdk/{__version__}",
        "accept": "*/*",
        "accept-encoding": "identity",
    }
    if chunked:
        found["transfer-encoding"] = "chunked"
    elif isinstance(body, bytes):
        found["content-length"] = str(len(body))
    elif body is None and method in ("POST", "PUT", "PATCH"):
        found["content-length"] = "0"
    found.update(given)
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in found.items())]
    for line in lines:
        if "\r" in line or "\n" in line:
            raise UsageError(f"a line break is not allowed in {line.partition(':')[0]!r}")
    try:
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    except UnicodeEncodeError as error:
        raise UsageError(f"{error.object[error.start : error.end]!r} cannot be sent in a header") from error


def iter_events(response: Response) -> Iterator[tuple[str, str | None, str]]:
    """Server-sent events of a streamed answer as (event, id, data); comments are left out."""
    event = ""
    number: str | None = None
    data: list[str] = []
    rest = b""
    for chunk in response.iter_chunks():
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip("\r")
            if not line:
                if data:
                    yield event or "message", number, "\n".join(data)
                event, data = "", []
                continue
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "data":
                data.append(value)
            elif name == "event":
                event = value
            elif name == "id":
                number = value
