"""Everything that fsspec knows (`s3://`, `sftp://`, `abfs://` ...) as a storage; loaded when asked for."""

from __future__ import annotations

import errno
from threading import local

from openpaisdk.errors import AccessError, NotFoundError, OpenPAIError, UnavailableError, UsageError
from openpaisdk.storage.contract import BLOCK, Entry, part_name, same_start
from openpaisdk.storage.local import taken, translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from openpaisdk.storage.contract import Source

# What to install for a kind of address: an extra of this package, or a package beside fsspec.
EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "az": "abfs",
    "sftp": "sftp",
    "ssh": "sftp",
    "smb": "smb",
}
PACKAGES = {"oss": "ossfs", "hf": "huggingface_hub"}
# Kinds whose files can be added to, so that a broken transfer of one file goes on.
_GROWING = ("sftp", "ssh", "file", "local", "memory")
_HOSTED = ("sftp", "ssh", "smb")


class FsspecStorage:
    """Files behind an fsspec file system."""

    def __init__(self, address: str, **options: Any) -> None:
        self.protocol, _, rest = address.partition("://")
        self.address = f"{self.protocol}://{rest.rpartition('@')[2]}"
        try:
            import fsspec  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise _missing(self.protocol, address) from None
        find: Any = fsspec.core.url_to_fs
        self._open: Callable[[], Any] = lambda: find(address, **options)
        self._threads = local()
        try:
            self._threads.fs, self.root = self._open()
        except ImportError as error:
            raise _missing(self.protocol, address, str(error)) from None
        except ValueError as error:
            if "not known" in str(error):
                raise unknown(self.address) from None
            raise UsageError(f"{self.address}: {error}", hint="check how the address is written") from None
        except Exception as error:
            if (isinstance(error, TypeError) or self.protocol in _HOSTED) and not _host(rest):
                raise UsageError(
                    f"{self.address} names no host", hint=f"write {self.protocol}://HOST/PATH"
                ) from None
            raise _translate(error, self.address) from error

    @property
    def _fs(self) -> Any:
        # One for each thread: a connection such as SFTP's hangs when two threads use it at once.
        if not hasattr(self._threads, "fs"):
            self._threads.fs = self._try(self._open, self.address)[0]
        return self._threads.fs

    def _path(self, path: str) -> str:
        return f"{self.root.rstrip('/')}/{path.strip('/')}" if path.strip("/") else self.root

    def _try(self, call: Any, path: str, *args: Any, **more: Any) -> Any:
        try:
            return call(*args, **more)
        except OpenPAIError:
            raise
        except Exception as error:
            raise _translate(error, path) from error

    def list(self, path: str) -> list[Entry]:
        """What a folder holds."""
        real = self._path(path)
        if self.stat(path).kind == "file":
            return [self.stat(path)]
        found = self._try(self._fs.ls, path, real, detail=True)
        entries = [_entry(item) for item in found if item["name"].rstrip("/") != real.rstrip("/")]
        return sorted(entries, key=lambda entry: entry.name)

    def stat(self, path: str) -> Entry:
        """One file or folder."""
        self._fs.invalidate_cache()
        return _entry(self._try(self._fs.info, path, self._path(path)))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Contents from an offset on."""
        return self._blocks(self._try(self._fs.open, path, self._path(path), "rb"), path, offset, length)

    def _blocks(self, file: Any, path: str, offset: int, length: int | None) -> Iterator[bytes]:
        with file:
            if offset:
                file.seek(offset)
            while length is None or length > 0:
                block = self._try(file.read, path, BLOCK if length is None else min(BLOCK, length))
                if not block:
                    return
                if length is not None:
                    length -= len(block)
                yield block

    def write(self, path: str, source: Source, *, overwrite: bool = False) -> None:
        """Make a file: a part takes its name when whole."""
        real = self._path(path)
        if self._try(self._fs.isdir, path, real):
            raise taken(path)
        if not overwrite and self._try(self._fs.exists, path, real):
            raise taken(path)
        folder = real.rpartition("/")[0]
        if folder:
            self._make_folders(folder, path)
        part = part_name(path.strip("/"), source.key)
        have = self._continue(part, source)
        self._try(self._fill, path, self._path(part), source, have)
        if self.stat(part).size != source.size:
            raise UnavailableError(f"{path}: not all of it arrived", hint="the same command again goes on")
        self._try(self._fs.mv, path, self._path(part), real)
        self._fs.invalidate_cache()

    def _make_folders(self, real: str, path: str) -> None:
        for attempt in range(4):
            try:
                self._fs.makedirs(real, exist_ok=True)
                return
            except Exception as error:
                # Another thread may be making the same folders, and SFTP has no word for "already there".
                if attempt == 3:
                    raise _translate(error, path) from error

    def _continue(self, part: str, source: Source) -> int:
        if self.protocol not in _GROWING:
            return 0
        try:
            have = self.stat(part).size
        except NotFoundError:
            return 0
        return have if have <= source.size and same_start(self.read(part), source, have) else 0

    def _fill(self, part: str, source: Source, have: int) -> None:
        with self._fs.open(part, "ab" if have else "wb") as file:
            for block in source.blocks(have, source.size):
                file.write(block)

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it."""
        if self._try(self._fs.isfile, path, self._path(path)):
            raise taken(path)
        self._make_folders(self._path(path), path)

    def remove(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file or a folder."""
        self._fs.invalidate_cache()
        real = self._path(path)
        if not self._try(self._fs.exists, path, real):
            return False
        if self._try(self._fs.isdir, path, real) and not recursive:
            if self._try(self._fs.ls, path, real, detail=False):
                raise translate(OSError(errno.ENOTEMPTY, "not empty"), path)
            self._try(self._fs.rmdir, path, real)
        else:
            self._try(self._fs.rm, path, real, recursive=recursive)
        return True

    def checksum(self, path: str, kind: str = "sha256") -> str | None:
        """Not computed over there."""
        return None

    def set_modified(self, path: str, modified: float) -> bool:
        """Set the time of the last change, which SFTP can, in whole seconds."""
        if self.protocol not in ("sftp", "ssh"):
            return False
        self._try(self._fs.ftp.utime, path, self._path(path), (int(modified), int(modified)))
        return True


def _host(rest: str) -> str:
    return rest.partition("/")[0].rpartition("@")[2].partition(":")[0]


def unknown(address: str) -> UsageError:
    """Nobody knows what the address means."""
    known = ", ".join(["file", "hdfs", "webhdfs", *sorted({*EXTRAS, *PACKAGES})])
    return UsageError(
        f"{address}: unknown kind of address",
        hint=f"known are {known}, and what else fsspec knows where it is installed",
    )


def _missing(protocol: str, address: str, said: str = "") -> UsageError:
    if protocol in EXTRAS:
        hint = f"install them with `pip install 'openpaisdk[{EXTRAS[protocol]}]'`"
    elif protocol in PACKAGES:
        hint = f"install them with `pip install fsspec {PACKAGES[protocol]}`"
    elif said:
        hint = said
    else:
        return unknown(address)
    return UsageError(f"{protocol}:// storages are not installed here", hint=hint)


def _translate(error: Exception, path: str) -> OpenPAIError:
    name = type(error).__name__
    if "Authentication" in name or "NoCredentials" in name or "BadHostKey" in name:
        return AccessError(f"{path}: the login was refused: {error}")
    if name == "gaierror":
        return UnavailableError(
            f"{path}: the host is not known: {getattr(error, 'strerror', error)}",
            hint="check the name of the host and the network",
        )
    if (
        isinstance(error, TimeoutError | ConnectionError | EOFError)
        or getattr(error, "errno", None) in (errno.EHOSTUNREACH, errno.ENETUNREACH)
        or "SSH" in name
        or "NoValidConn" in name
    ):
        return UnavailableError(
            f"{path}: the connection failed: {error}", hint="the same command again goes on"
        )
    if isinstance(error, OSError):
        return translate(error, path)
    return UsageError(f"{path}: {error}")


def _entry(found: dict[str, Any]) -> Entry:
    name = str(found["name"]).rstrip("/").rpartition("/")[2]
    kind = {"directory": "folder", "file": "file"}.get(str(found.get("type")), "link")
    moment = (
        found.get("mtime") or found.get("LastModified") or found.get("last_modified") or found.get("created")
    )
    seconds = float(moment or 0) if isinstance(moment, int | float | None) else moment.timestamp()
    return Entry(name, kind, int(found.get("size") or 0) if kind == "file" else 0, seconds)
