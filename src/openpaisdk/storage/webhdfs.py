"""WebHDFS as a storage: a Hadoop cluster, or our own server's files, which also take packs of small files."""

from __future__ import annotations

import struct
from time import sleep

from openpaisdk.errors import (
    AccessError,
    ConflictError,
    LoginError,
    NotFoundError,
    OpenPAIError,
    QuotaError,
    ServerError,
    UnavailableError,
    UsageError,
)
from openpaisdk.storage.contract import Entry, is_part_of, part_name, same_start
from openpaisdk.transport import NetworkError, Transport, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from openpaisdk.storage.contract import Source
    from openpaisdk.transport import Response

    Send = Callable[..., Response]

PREFIX = "/webhdfs/v1"
SEGMENT = 64 << 20
# How long a request before ours, whose sender is gone, is given to end.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# After so long without a change a part is nobody's any more.
_GIVEN_UP_SECONDS = 60.0
_HEAD = struct.Struct(">IQ")
_OCTETS = {"content-type": "application/octet-stream"}
_BY_EXCEPTION: dict[str, type[OpenPAIError]] = {
    "FileNotFoundException": NotFoundError,
    "AccessControlException": AccessError,
    "SecurityException": LoginError,
    "AuthenticationException": LoginError,
    "InvalidToken": LoginError,
    "FileAlreadyExistsException": ConflictError,
    "PathIsNotEmptyDirectoryException": ConflictError,
    "AlreadyBeingCreatedException": ConflictError,
    "ParentNotDirectoryException": ConflictError,
    "DSQuotaExceededException": QuotaError,
    "NSQuotaExceededException": QuotaError,
    "DiskOutOfSpaceException": QuotaError,
    "StandbyException": UnavailableError,
    "RetriableException": UnavailableError,
    "SafeModeException": UnavailableError,
    "IllegalArgumentException": UsageError,
}


class WebHDFS:
    """Files behind WebHDFS. `ours` says it is our server: one step instead of two, whole files or none."""

    def __init__(
        self, send: Send, address: str, *, ours: bool = False, options: dict[str, str] | None = None
    ) -> None:
        self._send = send
        self._options = options or {}
        self.ours = ours
        self.address = address

    @classmethod
    def at(
        cls, uri: str, *, user: str | None = None, token: str | None = None, verify: bool | str = True
    ) -> WebHDFS:
        """A Hadoop cluster by its NameNode's web address, with a delegation token or as a plain user."""
        transport = Transport(uri, verify=verify, timeout=120)
        options = {"delegation": token} if token else {"user.name": user} if user else {}

        def send(method: str, path: str, **more: Any) -> Response:
            try:
                response = transport.request(method, path, **more)
            except NetworkError as error:
                error.hint = f"check {uri}: WebHDFS listens on the NameNode's web port, mostly 9870"
                raise
            if response.status >= 400:
                raise failure(response)
            return response

        return cls(send, uri.rstrip("/"), options=options)

    @property
    def login(self) -> dict[str, str]:
        """How the storage is told who asks: `user.name`, or `delegation` with a token."""
        return dict(self._options)

    @classmethod
    def of_cluster(cls, cluster: Any) -> WebHDFS:
        """The files of our own server, with the cluster's login."""
        return cls(cluster.request, str(cluster.portal_uri), ours=True)

    def call(
        self, method: str, op: str, path: str, *, stream: bool = False, body: Any = None, **options: Any
    ) -> Response:
        """One operation on one path."""
        query = {"op": op, **self._options, **options}
        headers = dict(_OCTETS) if body is not None else {}
        target = PREFIX + quote("/" + path.strip("/"), "/")
        return self._send(method, target, query=query, headers=headers, body=body, stream=stream)

    def home(self) -> str:
        """The user's own folder."""
        return str(self.call("GET", "GETHOMEDIRECTORY", "/").json()["Path"])

    def list(self, path: str) -> list[Entry]:
        """What a folder holds."""
        found = self.call("GET", "LISTSTATUS", path).json()["FileStatuses"]["FileStatus"]
        return [_entry(status, path) for status in found]

    def stat(self, path: str) -> Entry:
        """One file or folder."""
        return _entry(self.call("GET", "GETFILESTATUS", path).json()["FileStatus"], path)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Contents from an offset on."""
        if length == 0:
            return iter(())
        response = self.call("GET", "OPEN", path, stream=True, offset=offset or None, length=length)
        if response.status == 307:
            response = self._follow("GET", response, stream=True)
        return response.iter_chunks()

    def write(self, path: str, source: Source, *, overwrite: bool = False) -> None:
        """Make a file: at once where that is safe, otherwise as a part that is renamed when whole."""
        if self.ours and source.size <= SEGMENT:
            if source.size > 1 << 20:
                self.call("PUT", "CREATE", path, noredirect=True, overwrite=overwrite, size=source.size)
            self._put("PUT", "CREATE", path, source, 0, source.size, overwrite=overwrite)
            return
        if not overwrite and self._size(path) is not None:
            raise ConflictError(
                f"{path} already exists", hint="replace it with --overwrite, or use another name"
            )
        part = part_name(path, source.key)
        try:
            self._fill(part, source)
            self._publish(part, path, overwrite)
        except NotFoundError:
            # The same file was sent by two at once, and the other one was done first.
            if self._size(path) != source.size:
                raise
        if source.size > SEGMENT:
            self._sweep(path)

    def _fill(self, part: str, source: Source) -> None:
        if self.ours:
            self._append_at_once(part, source)
        else:
            have = self._begin(part, source, SEGMENT)
            while have < source.size:
                end = min(have + SEGMENT, source.size)
                self._put("POST", "APPEND", part, source, have, end)
                have = end
        if self.stat(part).size != source.size:
            raise ServerError(f"{part}: not all of it arrived", hint="the same command again goes on")

    def _sweep(self, path: str) -> None:
        """Delete parts of other contents that were once sent to this name and given up.

        The file itself is in its place by now, so a folder that cannot be listed is no failure.
        """
        folder, _, name = path.rstrip("/").rpartition("/")
        try:
            now = self.stat(path).modified
            for entry in self.list(folder or "/"):
                if is_part_of(name, entry.name) and now - entry.modified > _GIVEN_UP_SECONDS:
                    self.remove(f"{folder}/{entry.name}")
        except OpenPAIError:
            pass

    def _append_at_once(self, part: str, source: Source) -> None:
        """All that is missing in one request. Our server refuses it while a broken one before it still
        writes, and where the part is longer by now than it was when we looked."""
        for pause in (*_PAUSES, None):
            # It keeps what arrived of an append, but nothing of a file that was never whole.
            have = self._begin(part, source, 0)
            if have == source.size:
                return
            try:
                self._put("POST", "APPEND", part, source, have, source.size, position=have)
                return
            except ConflictError:
                if pause is None:
                    raise
                sleep(pause)

    def _begin(self, part: str, source: Source, first: int) -> int:
        """How much of the source is there already; made anew with its first bytes where that is nothing."""
        have = self._size(part)
        if have == first == 0:
            return 0
        if have and have <= source.size:
            # Hadoop shows more than the size says of a part that it still holds for a sender who is gone;
            # nothing can be added to it then.
            stored = self.read(part, 0, have) if self.ours else self.read(part)
            if same_start(stored, source, have):
                return have
        first = min(first, source.size)
        self._put("PUT", "CREATE", part, source, 0, first, overwrite=True)
        return first

    def _size(self, path: str) -> int | None:
        try:
            return self.stat(path).size
        except NotFoundError:
            return None

    def _publish(self, part: str, path: str, overwrite: bool) -> None:
        target = "/" + path.strip("/")
        if overwrite:
            self.call("PUT", "RENAME", part, destination=target, renameoptions="OVERWRITE")
        elif not self.call("PUT", "RENAME", part, destination=target).json()["boolean"]:
            if not self.remove(part):
                raise NotFoundError(f"there is no {part}")
            raise ConflictError(
                f"{path} already exists", hint="replace it with --overwrite, or use another name"
            )

    def _put(
        self, verb: str, op: str, path: str, source: Source, start: int, end: int, **options: Any
    ) -> None:
        headers = {**_OCTETS, "content-length": str(end - start)}
        if self.ours:
            query = {"op": op, "data": True, **self._options, **options}
            body = source.blocks(start, end)
            self._send(
                verb, PREFIX + quote("/" + path.strip("/"), "/"), query=query, headers=headers, body=body
            )
            return
        first = self.call(verb, op, path, **options)
        self._follow(verb, first, headers=headers, body=source.blocks(start, end))

    def _follow(self, method: str, first: Response, **more: Any) -> Response:
        place = first.headers.get("location") or ""
        if first.status != 307 or not place:
            raise ServerError(f"{self.address} did not say where contents go (HTTP {first.status})")
        return self._send(method, place, **more)

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it."""
        self.call("PUT", "MKDIRS", path)

    def remove(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file or a folder."""
        return bool(self.call("DELETE", "DELETE", path, recursive=recursive).json()["boolean"])

    def checksum(self, path: str, kind: str = "sha256") -> str | None:
        """SHA-256 or CRC-32 on our own server; Hadoop's checksums are of another kind."""
        if not self.ours:
            return None
        return str(self.call("GET", "GETFILECHECKSUM", path, algorithm=kind).json()["FileChecksum"]["bytes"])

    def write_many(self, folder: str, files: dict[str, bytes], *, overwrite: bool = False) -> None:
        """Make many small files below a folder in one request; only our own server can. Repeatable."""
        from zlib import crc32

        body = b"".join(
            _HEAD.pack(len(name.encode()), len(contents)) + name.encode() + contents
            for name, contents in files.items()
        )
        found = self.call("POST", "UNPACK", folder, body=body, overwrite=overwrite).json()["crc32"]
        wrong = [name for name, contents in files.items() if found.get(name) != f"{crc32(contents):08x}"]
        if wrong:
            raise ServerError(f"{folder}/{wrong[0]} arrived damaged", hint="send it again with --overwrite")

    def read_many(self, folder: str, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Small files below a folder from one request; those that cannot be had this way are left out."""
        import json

        response = self.call("POST", "PACK", folder, body=json.dumps([*names]).encode(), stream=True)
        buffer = bytearray()
        chunks = response.iter_chunks()

        def take(size: int) -> bytes:
            while len(buffer) < size:
                chunk = next(chunks, b"")
                if not chunk:
                    raise UnavailableError(f"{self.address}: the connection was lost in mid-transfer")
                buffer.extend(chunk)
            found = bytes(buffer[:size])
            del buffer[:size]
            return found

        for chunk in chunks:
            buffer.extend(chunk)
            while buffer:
                length, size = _HEAD.unpack(take(_HEAD.size))
                name = take(length).decode()
                yield name, take(size)

    def set_modified(self, path: str, modified: float) -> bool:
        """Set the time of the last change."""
        self.call("PUT", "SETTIMES", path, modificationtime=int(modified * 1000))
        return True


def failure(response: Response) -> OpenPAIError:
    """The error that a RemoteException stands for."""
    try:
        found = response.json()["RemoteException"]
        name, message = str(found["exception"]), str(found["message"]).strip().splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        name, message = "", f"{response.url.partition('?')[0]} answered HTTP {response.status}"
    kind = _BY_EXCEPTION.get(name)
    if kind is None:
        by_status = {401: LoginError, 403: AccessError, 404: NotFoundError, 400: UsageError}
        kind = by_status.get(response.status, ServerError)
    return kind(message)


def _entry(status: dict[str, Any], path: str) -> Entry:
    kind = {"DIRECTORY": "folder", "FILE": "file"}.get(status["type"], "link")
    name = status["pathSuffix"] or path.rstrip("/").rpartition("/")[2]
    return Entry(name, kind, status["length"], status["modificationTime"] / 1000)
