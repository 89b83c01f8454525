"""Code inside the job text, for clusters that have no place for files."""

# ruff: noqa: PTH123 - see scan
from __future__ import annotations

import json

from openpaisdk.errors import UsageError
from openpaisdk.workspace.bundle import as_text
from openpaisdk.workspace.shipping import show_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openpaisdk.workspace.shipping import Plan

# What compresses better than this is rare, and reading more would be in vain.
_BEST_RATIO = 20
_PACKINGS = ("gzip", "xz")


def packed_code(plan: Plan, *, room: int) -> tuple[str, str]:
    """The files as a tar archive in base64, and the name of the program that unpacks it.

    gzip where it fits into `room` characters, since every image has it; UsageError where nothing fits.
    """
    text, packing = "", _PACKINGS[0]
    if plan.bytes <= max(room, 0) * _BEST_RATIO:
        archive = _archive(plan)
        for packing in _PACKINGS:
            text = as_text(_compressed(archive, packing))
            if len(text) <= room:
                return text, packing
    needed = show_size(len(text) if text else plan.bytes)
    raise UsageError(
        f"the code ({plan.files:,} files, {show_size(plan.bytes)}) needs {needed} of the job's text, "
        f"which has room for {show_size(max(room, 0))}: this cluster has no other place for code",
        hint="name a storage with `opai cluster add -a ALIAS --workspace hdfs://HOST/PATH`, leave files out "
        "with .opaiignore or -s, or send none with --no-source",
    )


def _archive(plan: Plan) -> bytes:
    import tarfile
    from io import BytesIO

    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in json.loads(plan.manifest):
            member = tarfile.TarInfo(entry["path"])
            if "link" in entry:
                member.type, member.linkname = tarfile.SYMTYPE, entry["link"]
                archive.addfile(member)
            elif "folder" in entry:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(member)
            else:
                member.size, member.mode = entry["size"], entry["mode"]
                with open(plan.contents[entry["sha256"]].path, "rb") as opened:
                    archive.addfile(member, opened)
    return packed.getvalue()


def _compressed(archive: bytes, packing: str) -> bytes:
    if packing == "xz":
        import lzma

        return lzma.compress(archive, preset=9)
    import gzip

    # Without a time in it, equal code gives equal text.
    return gzip.compress(archive, 9, mtime=0)
