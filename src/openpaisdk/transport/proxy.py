"""Reaching a server through the proxy that the environment names."""

from __future__ import annotations

from openpaisdk.transport.http1 import NetworkError, show_origin, split_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from openpaisdk.transport.http1 import Origin


def proxy_for(origin: Origin, environment: Mapping[str, str]) -> Origin | None:
    """The proxy to use, None for a direct connection. Loopback is always direct."""
    scheme, host, port = origin
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    found = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy")}
    address = found.get(f"{scheme}_proxy") or found.get("all_proxy")
    if not address:
        return None
    for item in found.get("no_proxy", "").split(","):
        rule = item.strip().lower().lstrip("*").lstrip(".")
        if item.strip() == "*" or (rule and (rule in (host, f"{host}:{port}") or host.endswith("." + rule))):
            return None
    return split_url(address)[0]


def tunnel(connection: socket.socket, origin: Origin, proxy: Origin) -> None:
    """Ask the proxy for a connection to the origin, over which TLS then runs."""
    _, host, port = origin
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    connection.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
    answer = b""
    # Byte by byte at the end of the head: what follows belongs to the TLS handshake.
    while not answer.endswith(b"\r\n\r\n") and len(answer) < 65536:
        byte = connection.recv(1)
        if not byte:
            break
        answer += byte
    status = answer.split(b" ", 2)[1:2]
    if not status or not status[0].startswith(b"2"):
        said = answer.partition(b"\r\n")[0].decode("latin-1") or "nothing"
        raise NetworkError(
            f"the proxy {show_origin(proxy)} refused a connection to {show_origin(origin)}: {said}",
            reason="unreachable",
            sent=False,
            hint="name the server in no_proxy where it can be reached directly",
        )
