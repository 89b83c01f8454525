"""One HTTP/1.1 connection over a socket, and what goes wrong with it in plain words.

Written here rather than taken from `http.client`, because that module loads the `email` package and `ssl` for
every command: 20 ms where the bare interpreter takes 11, against 3 ms for `socket` alone. Here `ssl` is
loaded for https only.
"""

from __future__ import annotations

import os
import socket

from openpaisdk.errors import ConfigError, UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader
    from typing import Any

    Origin = tuple[str, str, int]

_MAX_LINE = 65536
_MAX_HEADERS = 200
_PIECE = 256 << 10


class NetworkError(UnavailableError):
    """No complete answer came back.

    `reason` is refused, dns, tls, timeout, lost, unreachable or garbled; `sent` says whether the server may
    have seen the request, so whether it may have acted on it.
    """

    def __init__(self, message: str, *, reason: str, sent: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.sent = sent


def split_url(url: str) -> tuple[Origin, str]:
    """The origin (scheme, host, port) and the rest, which starts with `/` or is empty."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator:
        scheme, rest = "http", url
    if scheme not in ("http", "https"):
        raise ConfigError(
            f"{url!r} is not an http or https address", hint="for example https://pai.example.com"
        )
    cut = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    place, path = rest[:cut], rest[cut:].partition("#")[0]
    if "@" in place:
        raise ConfigError(
            f"the address of {place.rpartition('@')[2]} holds a user name",
            hint="use the keys user and passwd instead",
        )
    host, bracket, after = place.partition("]")
    if bracket:
        host, port = host.lstrip("["), after.lstrip(":")
    else:
        host, _, port = place.partition(":")
    if not host or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise ConfigError(
            f"{url!r} is not an address", hint="for example https://pai.example.com or http://host:80"
        )
    if path.startswith("?"):
        path = "/" + path
    return (scheme, host.lower(), int(port) if port else (443 if scheme == "https" else 80)), path


def show_origin(origin: Origin) -> str:
    """The origin as people write it."""
    scheme, host, port = origin
    place = f"[{host}]" if ":" in host else host
    return f"{scheme}://{place}" + ("" if port == (443 if scheme == "https" else 80) else f":{port}")


def describe(error: OSError, origin: Origin, *, sent: bool, timeout: float) -> NetworkError:
    """The failure of a connection as an error that people can act on."""
    shown = show_origin(origin)
    if isinstance(error, TimeoutError):
        return NetworkError(
            f"{shown} did not answer within {timeout:g} s",
            reason="timeout",
            sent=sent,
            hint="try again, or check the address and the network",
        )
    if isinstance(error, socket.gaierror):
        return NetworkError(
            f"cannot reach {shown}: there is no host called {origin[1]!r}",
            reason="dns",
            sent=False,
            hint="check the spelling of pai_uri (`opai cluster list`) and the network",
        )
    if isinstance(error, ConnectionRefusedError):
        return NetworkError(
            f"cannot reach {shown}: nothing listens there (connection refused)",
            reason="refused",
            sent=False,
            hint="check that the server runs and that pai_uri is right (`opai cluster list`)",
        )
    verdict = getattr(error, "verify_message", None)
    if verdict:
        return NetworkError(
            f"the certificate of {shown} is not trusted: {verdict}",
            reason="tls",
            sent=False,
            hint="`opai cluster add -a ALIAS --ca-file FILE` trusts its CA, --no-verify trusts it unchecked",
        )
    if hasattr(error, "library"):
        return NetworkError(
            f"no secure connection to {shown}: {getattr(error, 'reason', None) or error}",
            reason="tls",
            sent=sent,
            hint="check that the server speaks https on this port; otherwise write http:// in pai_uri",
        )
    if isinstance(error, ConnectionError):
        return NetworkError(
            f"the connection to {shown} was lost before the answer was complete",
            reason="lost",
            sent=sent,
            hint="try again; what was asked for may have been done all the same (`opai job list` tells).\n"
            "Where it repeats, check pai_uri, and that it is https where the server speaks https",
        )
    return NetworkError(
        f"cannot reach {shown}: {error.strerror or error}",
        reason="unreachable",
        sent=sent,
        hint="check pai_uri (`opai cluster list`) and the network",
    )


class Connection:
    """A socket to one origin that carries one exchange after the other. Not for two threads at once."""

    def __init__(self, origin: Origin, timeout: float, tls: Any = None, proxy: Origin | None = None) -> None:
        self.origin = origin
        self.reused = False
        self.answering = False
        self._process = os.getpid()
        self._keep = True
        self._unsent = False
        self._encrypted = tls is not None
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._reader: BufferedReader | None = None
        try:
            self._open(tls, proxy)
        except OSError as error:
            self.close()
            raise describe(error, proxy or origin, sent=False, timeout=timeout) from error

    def _open(self, tls: Any, proxy: Origin | None) -> None:
        _, host, port = proxy or self.origin
        # As bytes, because text makes the standard library load its table of international names.
        place = host.encode() if host.isascii() else host
        self._socket = socket.create_connection((place, port), self._timeout)  # type: ignore[arg-type]
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            if proxy is not None:
                from openpaisdk.transport.proxy import tunnel

                tunnel(self._socket, self.origin, proxy)
            self._socket = tls.wrap_socket(self._socket, server_hostname=self.origin[1])
        self._reader = self._socket.makefile("rb")

    def usable(self) -> bool:
        """Whether an idle connection is still open on the other side, as far as this side can know."""
        return self._process == os.getpid() and self._incoming() is False

    def _incoming(self, seconds: float = 0) -> bool | None:
        """Whether something came in, the end included; None where the socket cannot be asked."""
        import select

        if self._socket is None:
            return None
        try:
            if not hasattr(select, "poll"):
                return bool(select.select([self._socket], [], [], seconds)[0])
            asked = select.poll()  # takes any descriptor, where select stops at 1024
            asked.register(self._socket, select.POLLIN)
            return bool(asked.poll(seconds * 1000))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the socket; safe to call again."""
        reader, self._reader = self._reader, None
        connection, self._socket = self._socket, None
        for part in (reader, connection):
            if part is not None:
                try:
                    part.close()
                except OSError:
                    pass

    def __del__(self) -> None:
        self.close()

    def send(self, head: bytes, body: bytes | Iterable[bytes] | None, chunked: bool, timeout: float) -> None:
        """Send a request. Head and body go out together, so that small requests are one packet.

        A body is sent no further once the other side has answered: nobody reads the rest.
        """
        assert self._socket is not None
        self._timeout = timeout
        self._unsent = False
        self._socket.settimeout(timeout)
        if body is None or isinstance(body, bytes):
            self._socket.sendall(head + (body or b""))
            return
        self._socket.sendall(head)
        try:
            for piece in body:
                if self._answered():
                    self._unsent = True
                    return
                if piece:
                    self._socket.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                self._socket.sendall(b"0\r\n\r\n")
        except ConnectionError:
            if not self._answered(0.1):
                raise
            self._unsent = True

    def _answered(self, seconds: float = 0) -> bool:
        """Whether the answer has begun; `100 Continue`, which Hadoop sends unasked, is none."""
        # Over TLS it cannot be looked at without taking it out.
        if self._socket is None or self._encrypted or not self._incoming(seconds):
            return False
        try:
            begun = self._socket.recv(10, socket.MSG_PEEK)
        except OSError:
            return False
        return begun.startswith(b"HTTP/1.") and begun[9:] > b"1"

    def receive(self, method: str) -> tuple[int, dict[str, str], Iterator[bytes]]:
        """Status, headers (lower-case names) and the body as it arrives; OSError where nothing came."""
        assert self._reader is not None
        self.answering = False
        while True:
            line = self._reader.readline(_MAX_LINE)
            if not line:
                raise ConnectionResetError("closed before an answer")
            self.answering = True
            status, newer = self._status(line)
            headers = self._headers()
            if status >= 200 or status == 101:
                break
        said = headers.get("connection", "").lower()
        self._keep = "close" not in said and (newer or "keep-alive" in said) and not self._unsent
        if method == "HEAD" or status in (204, 304):
            return status, headers, self._fixed(0)
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return status, headers, self._chunked()
        length = headers.get("content-length")
        if length is None:
            self._keep = False
            return status, headers, self._until_closed()
        if not length.isdigit():
            raise self._garbled(f"Content-Length: {length}")
        return status, headers, self._fixed(int(length))

    @property
    def reusable(self) -> bool:
        """Whether the last answer was read to its end and another request may follow."""
        return self._keep and not self.answering and self._socket is not None

    def _status(self, line: bytes) -> tuple[int, bool]:
        version, _, rest = line.partition(b" ")
        code = rest[:3]
        if not (version.startswith(b"HTTP/1.") and code.isdigit() and len(code) == 3):
            raise self._garbled(line[:60].decode("latin-1").strip())
        return int(code), version != b"HTTP/1.0"

    def _headers(self) -> dict[str, str]:
        assert self._reader is not None
        found: dict[str, str] = {}
        for _ in range(_MAX_HEADERS):
            line = self._reader.readline(_MAX_LINE)
            if line in (b"\r\n", b"\n"):
                return found
            if not line.endswith(b"\n"):
                raise self._lost() if len(line) < _MAX_LINE else self._garbled("a header without end")
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon:
                raise self._garbled(line[:60].decode("latin-1").strip())
            name, value = name.strip().lower(), value.strip()
            found[name] = f"{found[name]}, {value}" if name in found else value
        raise self._garbled(f"more than {_MAX_HEADERS} headers")

    def _fixed(self, length: int) -> Iterator[bytes]:
        while length > 0:
            piece = self._read(min(length, _PIECE))
            length -= len(piece)
            if length == 0:
                self.answering = False
            yield piece
        self.answering = False

    def _chunked(self) -> Iterator[bytes]:
        while True:
            size_line = self._line().partition(b";")[0].strip()
            try:
                size = int(size_line, 16)
            except ValueError:
                raise self._garbled(size_line[:60].decode("latin-1")) from None
            if size <= 0:
                break
            while size > 0:
                piece = self._read(min(size, _PIECE))
                size -= len(piece)
                yield piece
            self._line()
        while self._line().strip():
            pass
        self.answering = False

    def _until_closed(self) -> Iterator[bytes]:
        while piece := self._read(_PIECE, end_is_fine=True):
            yield piece
        self.answering = False

    def _read(self, size: int, end_is_fine: bool = False) -> bytes:
        if self._reader is None:
            raise self._lost()
        try:
            piece = self._reader.read1(size)
        except OSError as error:
            self.close()
            raise describe(error, self.origin, sent=True, timeout=self._timeout) from error
        if not piece and not end_is_fine:
            raise self._lost()
        return piece

    def _line(self) -> bytes:
        if self._reader is None:
            raise self._lost()
        try:
            line = self._reader.readline(_MAX_LINE)
        except OSError as error:
            self.close()
            raise describe(error, self.origin, sent=True, timeout=self._timeout) from error
        if not line.endswith(b"\n"):
            raise self._lost()
        return line

    def _lost(self) -> NetworkError:
        self.close()
        return describe(ConnectionResetError(), self.origin, sent=True, timeout=self._timeout)

    def _garbled(self, what: str) -> NetworkError:
        self.close()
        return NetworkError(
            f"{show_origin(self.origin)} answered something that is not HTTP: {what!r}",
            reason="garbled",
            sent=True,
            hint="check the port of pai_uri (`opai cluster list`)",
        )
