"""The server's files through the WebHDFS protocol, as a bare ASGI application mounted at `/webhdfs/v1`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from openpaisdk.errors import AccessError, ConflictError, OpenPAIError, UsageError
from openpaisdk.server.files import contents, remote_errors
from openpaisdk.server.files.exchange import Exchange, identify
from openpaisdk.server.files.operations import Files
from openpaisdk.server.files.paths import Place
from openpaisdk.server.files.streaming import Disk

log = logging.getLogger(__name__)


def webhdfs_app(services: Any, *, files: Files | None = None) -> ASGIApp:
    """The application for a server's services; `files` may be shared with others that need it."""
    served = files or files_of(services)
    disk = Disk()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"WebHDFS answers HTTP only, not {scope['type']!r}")
        exchange = Exchange(scope, receive, send)
        try:
            await identify(services, exchange)
            await _operations(exchange)(served, disk, exchange)
        except ConnectionError:
            pass  # nobody is left to answer
        except Exception as error:
            if not isinstance(error, OpenPAIError | OSError):
                log.exception("%s %s failed", scope["method"], exchange.path)
            if exchange.answered:
                raise  # the server breaks the connection, and the other side sees that something is missing
            status, body = remote_errors.describe(error)
            await exchange.drain()
            await exchange.answer(body, status=status)
            if exchange.after_answer is not None:
                await exchange.after_answer()

    return app


def files_of(services: Any) -> Files:
    """The file area of a server: `<data>/files`, with the quota of its settings."""
    settings = services.settings
    quota_mb = getattr(settings, "file_quota_mb", 0) or 0
    return Files(str(settings.data_dir) + "/files", quota_bytes=int(quota_mb) << 20)


Operation = Callable[[Files, Disk, Exchange], Awaitable[None]]


def _operations(exchange: Exchange) -> Operation:
    name = exchange.options.get("op", "").upper()
    method = "GET" if exchange.is_head else exchange.scope["method"]
    found = OPERATIONS.get((method, name))
    if found is None:
        known = sorted(op for verb, op in OPERATIONS if verb == method)
        raise UsageError(
            f'Invalid value for webhdfs parameter "op": {name!r} with {method}.',
            hint=f"{method} knows {', '.join(known)}." if known else "Use GET, PUT, POST or DELETE.",
        )
    return found


async def _status(files: Files, disk: Disk, exchange: Exchange) -> None:
    await exchange.answer({"FileStatus": await disk.run(files.status, exchange.place(files))})


async def _list(files: Files, disk: Disk, exchange: Exchange) -> None:
    found = await disk.run(lambda: files.listing(exchange.place(files), exchange.user, admin=exchange.admin))
    await exchange.answer({"FileStatuses": {"FileStatus": found}})


async def _summary(files: Files, disk: Disk, exchange: Exchange) -> None:
    await exchange.answer({"ContentSummary": await disk.run(files.summary, exchange.place(files))})


async def _checksum(files: Files, disk: Disk, exchange: Exchange) -> None:
    kind = exchange.options.get("algorithm", "sha256").lower()
    found = await disk.run(files.checksum, exchange.place(files), kind)
    name = {"sha256": "SHA-256", "crc32": "CRC-32"}[kind]
    await exchange.answer({"FileChecksum": {"algorithm": name, "bytes": found, "length": len(found) // 2}})


async def _home(files: Files, disk: Disk, exchange: Exchange) -> None:
    await disk.run(files.area.home, exchange.user)
    await exchange.answer({"Path": f"/user/{exchange.user}"})


async def _mkdirs(files: Files, disk: Disk, exchange: Exchange) -> None:
    await disk.run(files.make_folders, exchange.place(files))
    await exchange.answer({"boolean": True})


async def _delete(files: Files, disk: Disk, exchange: Exchange) -> None:
    place = exchange.place(files, follow=False)
    gone = await disk.run(lambda: files.remove(place, recursive=exchange.flag("recursive")))
    await exchange.answer({"boolean": gone})


async def _rename(files: Files, disk: Disk, exchange: Exchange) -> None:
    wanted = exchange.options.get("destination", "")
    if not wanted.startswith("/"):
        raise UsageError(f"RENAME wants destination=/a/path, not {wanted!r}.")
    source = exchange.place(files, follow=False)
    target = exchange.place(files, wanted, follow=False)
    overwrite = exchange.options.get("renameoptions", "").upper() == "OVERWRITE"
    moved = await disk.run(lambda: files.rename(source, target, overwrite=overwrite))
    if overwrite and not moved:
        raise ConflictError(f"{source.logical} cannot be renamed to {target.logical}.")
    await exchange.answer({"boolean": moved})


async def _set_times(files: Files, disk: Disk, exchange: Exchange) -> None:
    modified, accessed = exchange.number("modificationtime", -1), exchange.number("accesstime", -1)
    await disk.run(files.set_times, _present(files, exchange), modified, accessed)
    await exchange.answer()


async def _set_permission(files: Files, disk: Disk, exchange: Exchange) -> None:
    await disk.run(files.set_mode, _present(files, exchange), exchange.options.get("permission", ""))
    await exchange.answer()


def _present(files: Files, exchange: Exchange) -> Place:
    place = exchange.place(files)
    files.status(place)
    if place.owner == "/":
        raise AccessError(f"{place.logical} is kept by the server.")
    return place


async def _nothing(files: Files, disk: Disk, exchange: Exchange) -> None:
    """Owners, replication and storage policies mean nothing here; the path must still be there."""
    _present(files, exchange)
    await exchange.answer({"boolean": True})


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "GETFILESTATUS"): _status,
    ("GET", "LISTSTATUS"): _list,
    ("GET", "OPEN"): contents.open_file,
    ("GET", "GETCONTENTSUMMARY"): _summary,
    ("GET", "GETFILECHECKSUM"): _checksum,
    ("GET", "GETHOMEDIRECTORY"): _home,
    ("PUT", "CREATE"): contents.create_file,
    ("PUT", "MKDIRS"): _mkdirs,
    ("PUT", "RENAME"): _rename,
    ("PUT", "SETTIMES"): _set_times,
    ("PUT", "SETPERMISSION"): _set_permission,
    ("PUT", "SETOWNER"): _nothing,
    ("PUT", "SETREPLICATION"): _nothing,
    ("POST", "APPEND"): contents.append_file,
    ("POST", "UNPACK"): contents.unpack,
    ("POST", "PACK"): contents.pack,
    ("DELETE", "DELETE"): _delete,
}
