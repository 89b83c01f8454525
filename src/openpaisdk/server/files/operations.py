"""What can be done with files and folders of the area, apart from moving their contents. All calls block."""

# Descriptors and folder-relative calls, which pathlib has not.
# ruff: noqa: PTH112, PTH114, PTH118, PTH119, PTH120
from __future__ import annotations

import errno
import os
import shutil
import stat
from typing import Any

from openpaisdk.errors import AccessError, ConflictError, NotFoundError, UsageError
from openpaisdk.server.files.digests import Digests
from openpaisdk.server.files.paths import Area, Place
from openpaisdk.server.files.usage import Quota, folder_usage

_KINDS = (stat.S_IFREG, stat.S_IFDIR)
_BLOCK_SIZE = 128 << 20


class Files:
    """The file area with its quota and digests."""

    def __init__(self, root: str, *, quota_bytes: int = 0) -> None:
        self.area = Area(root)
        self.quota = Quota(quota_bytes)
        self.digests = Digests()

    def status(self, place: Place) -> dict[str, Any]:
        """One file or folder as WebHDFS describes it."""
        found = _lstat(place)
        if stat.S_ISLNK(found.st_mode):
            raise NotFoundError(f"{place.logical} changed while it was looked at.")
        return _status("", found, place.owner)

    def listing(self, place: Place, user: str, *, admin: bool = False) -> list[dict[str, Any]]:
        """What a folder holds, by name; a file is listed as itself. Not homes of others, nor pipes."""
        if not stat.S_ISDIR(_lstat(place).st_mode):
            return [self.status(place)]
        found = []
        hidden = place.real == os.path.join(self.area.root, "user") and not admin
        fd = self.area.open_folder(place.real)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if hidden and entry.name != user:
                        continue
                    if place.real == self.area.root and entry.name not in ("user", "shared"):
                        continue
                    try:
                        if _is_kept(entry):
                            found.append(self._entry(place, entry, user, admin))
                    except FileNotFoundError:
                        continue
        finally:
            os.close(fd)
        return sorted(found, key=lambda status: str(status["pathSuffix"]))

    def _entry(self, folder: Place, entry: os.DirEntry[str], user: str, admin: bool) -> dict[str, Any]:
        owner = folder.owner if folder.owner != "/" else entry.name
        if not entry.is_symlink():
            return _status(entry.name, entry.stat(follow_symlinks=False), owner)
        try:
            target = self.area.place(f"{folder.logical}/{entry.name}", user, admin=admin)
            return _status(entry.name, os.lstat(target.real), target.owner)
        except (AccessError, OSError):
            status = _status(entry.name, entry.stat(follow_symlinks=False), owner)
            return {**status, "type": "SYMLINK", "length": 0}

    def summary(self, place: Place) -> dict[str, int]:
        """Bytes, files and folders below a path."""
        found = _lstat(place)
        if stat.S_ISDIR(found.st_mode):
            size, files, folders = folder_usage(place.real)
        else:
            size, files, folders = found.st_size, 1, 0
        return {
            "directoryCount": folders,
            "fileCount": files,
            "length": size,
            "quota": -1,
            "spaceConsumed": size,
            "spaceQuota": self.quota.limit if place.owner and self.quota.limit else -1,
        }

    def make_folders(self, place: Place) -> None:
        """Make a folder and those above it; already there is fine."""
        _refuse_top(place)
        try:
            self.area.make_folders(place.real)
        except NotADirectoryError:
            raise ConflictError(
                f"{place.logical} cannot be a folder: a file has that name, or one above it."
            ) from None

    def remove(self, place: Place, *, recursive: bool) -> bool:
        """Delete a file, a link or a folder; False when there was none."""
        _refuse_top(place)
        try:
            found = os.lstat(place.real)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if self._is_home(place):
            raise AccessError(
                f"{place.logical} is a home and cannot be deleted.", hint="Delete what is in it."
            )
        folder = self.area.open_folder(os.path.dirname(place.real))
        name = os.path.basename(place.real)
        try:
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=folder)
                self.count(place, -found.st_size)
            elif recursive:
                size = folder_usage(place.real)[0] if self.quota.limit else 0
                shutil.rmtree(name, dir_fd=folder)
                self.count(place, -size)
            else:
                os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise ConflictError(
                    f"{place.logical} is not empty.",
                    hint="Delete all of it with -r (recursive=true in a request).",
                ) from None
            raise
        finally:
            os.close(folder)
        return True

    def rename(self, source: Place, target: Place, *, overwrite: bool = False) -> bool:
        """Move a file or folder; into a folder when the target is one; over a file only when told."""
        _refuse_top(source)
        _refuse_top(target)
        if not os.path.lexists(source.real) or self._is_home(source):
            return False
        real = target.real
        if os.path.isdir(real) and not os.path.islink(real) and not overwrite:
            real = os.path.join(real, os.path.basename(source.real))
        blocked = os.path.isdir(real) if overwrite else os.path.lexists(real)
        if blocked or not os.path.isdir(os.path.dirname(real)):
            return False
        if (real + os.sep).startswith(source.real + os.sep):
            return False
        if source.owner != target.owner and self.quota.limit:
            size = self.summary(source)["length"]
            self.admit(target, size)
            self.count(target, size)
            self.count(source, -size)
        before = self.area.open_folder(os.path.dirname(source.real))
        try:
            after = self.area.open_folder(os.path.dirname(real))
            try:
                os.rename(
                    os.path.basename(source.real), os.path.basename(real), src_dir_fd=before, dst_dir_fd=after
                )
            finally:
                os.close(after)
        finally:
            os.close(before)
        return True

    def set_times(self, place: Place, modified_ms: int, accessed_ms: int) -> None:
        """Set modification and access time in milliseconds; -1 leaves one as it is."""
        fd = self.area.open_file(place, os.O_RDONLY)
        try:
            found = os.fstat(fd)
            known = self.digests.recall(fd)
            accessed = found.st_atime_ns if accessed_ms < 0 else accessed_ms * 1_000_000
            modified = found.st_mtime_ns if modified_ms < 0 else modified_ms * 1_000_000
            os.utime(fd, ns=(accessed, modified))
            if known:
                self.digests.remember(fd, known)
        finally:
            os.close(fd)

    def set_mode(self, place: Place, permission: str) -> None:
        """Set permission bits (octal text); the owner keeps reading and writing, set-uid is ignored."""
        try:
            mode = int(permission or "755", 8) & 0o777
        except ValueError:
            raise UsageError(f"{permission!r} is not an octal permission such as 644.") from None
        fd = self.area.open_file(place, os.O_RDONLY)
        try:
            os.fchmod(fd, mode | (0o700 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0o600))
        finally:
            os.close(fd)

    def checksum(self, place: Place, kind: str = "sha256") -> str:
        """SHA-256 or CRC-32 of a file's contents in hexadecimal."""
        fd = self.open_for_reading(place)[0]
        try:
            return self.digests.compute(fd, kind)
        finally:
            os.close(fd)

    def open_for_reading(self, place: Place) -> tuple[int, int]:
        """A descriptor and the size of a regular file; the caller closes it."""
        if not stat.S_ISREG(_lstat(place).st_mode):
            raise UsageError(f"{place.logical} is not a file.", hint="List it, or name a file in it.")
        fd = self.area.open_file(place, os.O_RDONLY)
        return fd, os.fstat(fd).st_size

    def admit(self, place: Place, size: int) -> None:
        """Raise QuotaError when so much more would not fit where the place is."""
        if self.quota.limit and place.owner not in ("", "/"):
            self.quota.admit(self.area.home(place.owner), size)

    def count(self, place: Place, size: int) -> None:
        """Count bytes that came (or, negative, went) where the place is."""
        if self.quota.limit and place.owner not in ("", "/"):
            self.quota.add(self.area.home(place.owner), size)

    def _is_home(self, place: Place) -> bool:
        above, name = os.path.split(place.real)
        return place.owner == name and above == os.path.join(self.area.root, "user")


def _refuse_top(place: Place) -> None:
    if place.owner == "/" or place.logical == "/shared":
        raise AccessError(
            f"{place.logical} is kept by the server.", hint="Use a path below /user or /shared."
        )


def _lstat(place: Place) -> os.stat_result:
    try:
        return os.lstat(place.real)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"File does not exist: {place.logical}") from None


def _is_kept(entry: os.DirEntry[str]) -> bool:
    """Whether it is something that can be read: pipes and sockets that tasks leave cannot."""
    return entry.is_symlink() or stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) in _KINDS


def _status(name: str, found: os.stat_result, owner: str) -> dict[str, Any]:
    folder = stat.S_ISDIR(found.st_mode)
    return {
        "accessTime": found.st_atime_ns // 1_000_000,
        "blockSize": 0 if folder else _BLOCK_SIZE,
        "childrenNum": 0,
        "fileId": found.st_ino,
        "group": "users",
        "length": 0 if folder else found.st_size,
        "modificationTime": found.st_mtime_ns // 1_000_000,
        "owner": owner or "shared",
        "pathSuffix": name,
        "permission": f"{stat.S_IMODE(found.st_mode) & 0o777:o}",
        "replication": 0 if folder else 1,
        "storagePolicy": 0,
        "type": "DIRECTORY" if folder else "FILE",
    }
