"""What a tree of code consists of: a JSON list of files, links and empty folders, checked before use."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

import msgspec

from openpaisdk.errors import UsageError

SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_MOST_ENTRIES = 1_000_000


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path of a tree: a file with its contents' SHA-256, a link, or an empty folder."""

    path: str
    sha256: str = ""
    size: int = 0
    mode: int = 0o644
    link: str = ""
    folder: bool = False


_decoder = msgspec.json.Decoder(list[Entry])


def parse(text: bytes) -> list[Entry]:
    """Read a manifest; paths that climb, clash or lead outside are refused by name."""
    try:
        entries = _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise UsageError(f"The manifest is not valid: {error}.") from None
    if len(entries) > _MOST_ENTRIES:
        raise UsageError(f"The manifest lists {len(entries):,} paths, more than {_MOST_ENTRIES:,}.")
    _check(entries)
    return entries


def _check(entries: Sequence[Entry]) -> None:
    leaves: set[str] = set()
    above: set[str] = set()
    for entry in entries:
        parts = entry.path.split("/")
        if not entry.path or "\0" in entry.path or any(part in ("", ".", "..") for part in parts):
            raise UsageError(
                f"The manifest holds the path {entry.path!r}, which is not a plain relative path."
            )
        if entry.path in leaves:
            raise UsageError(f"The manifest lists {entry.path!r} twice.")
        leaves.add(entry.path)
        for end in range(1, len(parts)):
            above.add("/".join(parts[:end]))
        if entry.link:
            _check_link(entry)
        elif not entry.folder and (not SHA256.match(entry.sha256) or entry.size < 0):
            raise UsageError(f"The manifest gives {entry.path!r} no valid SHA-256 or size.")
    for entry in entries:
        if entry.path in above and not (entry.folder and not entry.link):
            raise UsageError(f"The manifest has {entry.path!r} both as a folder and as something else.")


def _check_link(entry: Entry) -> None:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), entry.link))
    if entry.link.startswith("/") or "\0" in entry.link or target == ".." or target.startswith("../"):
        raise UsageError(
            f"The link {entry.path!r} leads out of the tree, to {entry.link!r}.",
            hint="Leave it out, or copy it.",
        )
