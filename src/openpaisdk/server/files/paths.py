"""Where a person's files are: logical paths (`/user/<name>`, `/shared`) confined to the server's file area.

A path is judged after every symbolic link in it has been resolved, and is then opened folder by folder
without following links, so that a link swapped in between leads nowhere.
"""

# Descriptors and folder-relative calls, which pathlib has not.
# ruff: noqa: PTH118, PTH119, PTH120, PTH206
from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from openpaisdk.errors import AccessError, NotFoundError, UsageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_AREAS = ("user", "shared")


class Place(NamedTuple):
    """One path of the area: as people write it, and where it really is."""

    logical: str
    real: str
    owner: str  # the user whose home it is in, "" in the shared area, "/" for the folders above the homes


def split(path: str) -> list[str]:
    """The parts of a logical path; one that climbs or cannot be a file name is refused."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UsageError(
            f"The path {path!r} climbs out with `..`.", hint="Write the path from the top, without `..`."
        )
    if "\0" in path:
        raise UsageError(f"The path {path!r} holds a zero byte.")
    if any(len(os.fsencode(part)) > 255 for part in parts):
        raise UsageError("A part of the path is longer than 255 bytes.", hint="Use shorter names.")
    return parts


class Area:
    """The file area below one folder: `user/<name>` for each person, `shared` for all."""

    def __init__(self, root: str | Path) -> None:
        self.root = os.path.realpath(root)
        self.staging = os.path.join(self.root, "staging")
        for name in (*_AREAS, "staging"):
            Path(self.root, name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def home(self, user: str) -> str:
        """The real folder of a user's home, made when it is not there yet."""
        folder = Path(self.root, "user", *split(user))
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    def place(self, path: str, user: str, *, admin: bool = False, follow: bool = True) -> Place:
        """Find a path for a user; `follow=False` means the last part itself even where it is a link."""
        parts = split(path)
        if parts and parts[0] not in _AREAS:
            raise NotFoundError(
                f"There is no {path!r}.", hint=f"Files live under /user/{user} and under /shared."
            )
        if parts[:2] == ["user", user]:
            self.home(user)
        joined = os.path.join(self.root, *parts)
        if follow or not parts:
            real = os.path.realpath(joined)
        else:
            real = os.path.join(os.path.realpath(os.path.dirname(joined)), parts[-1])
        return Place("/" + "/".join(parts), real, self._owner(path, real, user, admin))

    def _owner(self, path: str, real: str, user: str, admin: bool) -> str:
        if real == self.root:
            return "/"
        inside = real.startswith(self.root + os.sep)
        parts = real[len(self.root) + 1 :].split(os.sep) if inside else []
        if not parts or parts[0] not in _AREAS:
            raise AccessError(f"{path!r} leads out of the file area.", hint="Links may only point inside it.")
        if parts[0] == "shared":
            return ""
        if len(parts) == 1:
            return "/"
        if parts[1] != user and not admin:
            raise AccessError(
                f"{path!r} belongs to {parts[1]}, not to {user}.",
                hint="Use /shared for what others should see.",
            )
        return parts[1]

    def open_folder(self, real: str) -> int:
        """Open a resolved folder without following any link on the way; the caller closes it."""
        parts = [part for part in real[len(self.root) :].split(os.sep) if part]
        fd = os.open(self.root, _FOLDER)
        for part in parts:
            try:
                below = os.open(part, _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def open_file(self, place: Place, flags: int) -> int:
        """Open a resolved file without following any link on the way; the caller closes it."""
        folder = self.open_folder(os.path.dirname(place.real))
        try:
            return os.open(
                os.path.basename(place.real),
                flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
                dir_fd=folder,
            )
        finally:
            os.close(folder)

    def make_folders(self, real: str) -> None:
        """Make a resolved folder and those above it; already there is fine."""
        parts = [part for part in real[len(self.root) :].split(os.sep) if part]
        fd = os.open(self.root, _FOLDER)
        for part in parts:
            try:
                try:
                    below = os.open(part, _FOLDER, dir_fd=fd)
                except FileNotFoundError:
                    try:
                        os.mkdir(part, 0o755, dir_fd=fd)
                    except FileExistsError:
                        pass
                    below = os.open(part, _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        os.close(fd)
