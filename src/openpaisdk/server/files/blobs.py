"""Code by content: each user's blobs and manifests, named by their SHA-256, and laid out as trees for tasks.

Blobs are kept apart by user. In a common store anybody could have another's code laid out by naming its
manifest, which the job's public configuration shows.
"""

# Descriptors and folder-relative calls, which pathlib has not.
# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH120, PTH211
from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from openpaisdk.errors import ConflictError, NotFoundError, UsageError
from openpaisdk.server.files import manifests
from openpaisdk.server.files.manifests import SHA256

EMPTY = hashlib.sha256(b"").hexdigest()
_FICLONE = 0x40049409  # from linux/fs.h
_SMALL = 128 << 10
MANIFEST = "manifest:"
MOST_MANIFEST_BYTES = 256 << 20
_cannot_clone: set[int] = set()


class BlobStore:
    """One user's `<files>/blobs/<user>` and `<files>/manifests/<user>`. All calls block."""

    def __init__(self, files_root: str | Path, user: str) -> None:
        if not user or "/" in user or user in (".", ".."):
            raise UsageError(f"{user!r} is not a user name.")
        self.root = Path(files_root)
        self.blobs = self.root / "blobs" / user
        self.manifests = self.root / "manifests" / user

    def path(self, sha256: str) -> str:
        """Where a blob is, or would be."""
        return f"{self.blobs}/{sha256[:2]}/{sha256[2:]}"

    def has(self, sha256: str) -> bool:
        """Whether the contents are here. A file that a power cut left empty does not count."""
        try:
            return os.stat(self.path(sha256)).st_size > 0 or sha256 == EMPTY
        except FileNotFoundError:
            return False

    def has_manifest(self, sha256: str) -> bool:
        """Whether a whole tree is here; asking keeps it from being swept away."""
        path = self.manifests / sha256
        try:
            if path.stat().st_size:
                os.utime(path)
                return True
        except FileNotFoundError:
            pass
        return False

    def missing(self, wanted: Iterable[str]) -> list[str]:
        """Those that are neither here as a blob nor as a manifest, in order, each once."""
        found = []
        for sha256 in dict.fromkeys(wanted):
            require_sha256(sha256)
            if not self.has(sha256) and not self.has_manifest(sha256):
                found.append(sha256)
        return found

    def receive(self, sha256: str) -> IncomingBlob:
        """Take in contents that must turn out to have this SHA-256."""
        return IncomingBlob(self, require_sha256(sha256))

    def begin(self, name: str, size: int) -> IncomingBlob | IncomingManifest:
        """Take in a member of a pack: a blob by its SHA-256, or `manifest:` and a SHA-256."""
        if not name.startswith(MANIFEST):
            return self.receive(name)
        if size > MOST_MANIFEST_BYTES:
            raise UsageError(f"A manifest of {size:,} bytes is too long.", hint="Ship fewer files.")
        return IncomingManifest(self, name.removeprefix(MANIFEST))

    def add_manifest(self, sha256: str, text: bytes) -> None:
        """Keep a manifest; ConflictError while some of its blobs are not here."""
        if hashlib.sha256(text).hexdigest() != require_sha256(sha256):
            raise UsageError(f"The manifest does not have the SHA-256 {sha256}.", hint="Send it again.")
        entries = manifests.parse(text)
        lacking = sorted({entry.sha256 for entry in entries if entry.sha256 and not self.has(entry.sha256)})
        if lacking:
            raise ConflictError(
                f"{len(lacking):,} blobs of the manifest are missing, the first is {lacking[0]}.",
                hint="Send them, then the manifest again.",
            )
        self.manifests.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_whole(self.manifests / sha256, text)

    def manifest(self, sha256: str) -> list[manifests.Entry]:
        """The entries of a manifest that is here."""
        try:
            return manifests.parse((self.manifests / require_sha256(sha256)).read_bytes())
        except FileNotFoundError:
            raise NotFoundError(
                f"The code with the manifest {sha256} is not on this server.", hint="Submit the job again."
            ) from None

    def sweep(self, older_than: float, *, keep: Iterable[str] = ()) -> int:
        """Delete manifests not asked for since then, and old blobs that none left names; how many went."""
        kept, gone = set(keep), 0
        named: set[str] = set()
        for path in _files_in(self.manifests):
            if path.name in kept or path.stat().st_mtime >= older_than:
                named.update(entry.sha256 for entry in manifests.parse(path.read_bytes()))
            else:
                path.unlink(missing_ok=True)
                gone += 1
        for folder in list(self.blobs.iterdir()) if self.blobs.is_dir() else []:
            for path in _files_in(folder):
                if folder.name + path.name not in named and path.stat().st_mtime < older_than:
                    path.unlink(missing_ok=True)
                    gone += 1
        return gone


class IncomingBlob:
    """Contents on their way in; they get their name only when they are what was announced."""

    def __init__(self, store: BlobStore, sha256: str) -> None:
        self._store = store
        self._sha256 = sha256
        self._digest = hashlib.sha256()
        self._target = store.path(sha256)
        folder = os.path.dirname(self._target)
        self._path = f"{folder}/.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._fd = os.open(self._path, flags, 0o444)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._fd = os.open(self._path, flags, 0o444)

    def write(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Take more of the contents."""
        for chunk in chunks:
            self._digest.update(chunk)
            view = memoryview(chunk)
            while view:
                view = view[os.write(self._fd, view) :]

    def commit(self) -> str:
        """Name the blob; contents that are not what was announced are refused."""
        found = self._digest.hexdigest()
        if found != self._sha256:
            raise UsageError(
                f"The contents sent as {self._sha256} have the SHA-256 {found}.", hint="Send them again."
            )
        os.close(self._fd)
        self._fd = -1
        os.replace(self._path, self._target)
        return found

    def discard(self) -> None:
        """Leave no trace of contents that were not committed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            os.unlink(self._path)


class IncomingManifest:
    """A manifest on its way in as the last member of a pack."""

    def __init__(self, store: BlobStore, sha256: str) -> None:
        self._store = store
        self._sha256 = sha256
        self._text = bytearray()

    def write(self, chunks: Sequence[bytes | memoryview]) -> None:
        """Take more of the text."""
        for chunk in chunks:
            self._text += chunk

    def commit(self) -> str:
        """Keep it when all its blobs are here."""
        self._store.add_manifest(self._sha256, bytes(self._text))
        return self._sha256

    def discard(self) -> None:
        """Nothing is kept before `commit`."""


def lay_out(files_root: str | Path, manifest_sha: str, dest: str | Path, *, user: str) -> int:
    """Make the tree of a user's manifest below `dest`; how many files it has. Blocks; may be repeated.

    Every file is a copy (sharing blocks where it can), so a task that edits its code changes only its own.
    """
    store = BlobStore(files_root, user)
    entries = store.manifest(manifest_sha)
    store.has_manifest(manifest_sha)
    top = str(dest)
    folders = {os.path.dirname(entry.path) for entry in entries}
    folders.update(entry.path for entry in entries if entry.folder)
    os.makedirs(top, exist_ok=True)
    for folder in sorted(folders):
        os.makedirs(f"{top}/{folder}", exist_ok=True)
    files = 0
    for entry in entries:
        if entry.sha256:
            _copy(store, entry, f"{top}/{entry.path}")
            files += 1
    for entry in entries:
        if entry.link:
            _unlink(f"{top}/{entry.path}")
            os.symlink(entry.link, f"{top}/{entry.path}")
    return files


def _copy(store: BlobStore, entry: manifests.Entry, target: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o755 if entry.mode & 0o100 else 0o644
    try:
        source = os.open(store.path(entry.sha256), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFoundError(f"The contents of {entry.path!r} are no longer on this server.") from None
    try:
        if os.fstat(source).st_size != entry.size:
            raise NotFoundError(
                f"The contents of {entry.path!r} on this server are damaged.", hint="Submit again."
            )
        try:
            fd = os.open(target, flags, mode)
        except FileExistsError:
            _unlink(target)
            fd = os.open(target, flags, mode)
        try:
            _copy_contents(source, fd, entry.size)
        finally:
            os.close(fd)
    finally:
        os.close(source)


def _copy_contents(source: int, target: int, size: int) -> None:
    if size > _SMALL:
        device = os.fstat(target).st_dev
        if device not in _cannot_clone:
            try:
                fcntl.ioctl(target, _FICLONE, source)
                return
            except OSError as error:
                if error.errno not in (
                    errno.EOPNOTSUPP,
                    errno.EXDEV,
                    errno.EINVAL,
                    errno.ENOTTY,
                    errno.ENOSYS,
                ):
                    raise
                _cannot_clone.add(device)
    done = 0
    while done < size:
        block = os.pread(source, min(size - done, 8 << 20), done)
        if not block:
            raise OSError(errno.EIO, "a stored file became shorter while it was copied")
        view = memoryview(block)
        while view:
            view = view[os.write(target, view) :]
        done += len(block)


def require_sha256(text: str) -> str:
    """The text itself, when it is a SHA-256 in lower-case hexadecimal."""
    if not SHA256.match(text):
        raise UsageError(f"{text!r} is not a SHA-256 in lower-case hexadecimal.")
    return text


def sweep_all(files_root: str | Path, *, days: float = 30, keep: Iterable[str] = ()) -> int:
    """Sweep every user's store of what nobody asked for in so many days."""
    top = Path(files_root) / "blobs"
    users = [path.name for path in top.iterdir()] if top.is_dir() else []
    kept = set(keep)
    return sum(BlobStore(files_root, user).sweep(time.time() - days * 86400, keep=kept) for user in users)


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _write_whole(path: Path, text: bytes) -> None:
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    with temporary.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
