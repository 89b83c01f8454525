"""Code inside the job text, for clusters that have no place for files: one command that unpacks it."""

from __future__ import annotations

from openpaisdk.errors import UsageError
from openpaisdk.workspace.scan import is_forbidden, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The API takes 100 kB; the rest of the spec needs room too.
DEFAULT_LIMIT_BYTES = 80_000
_LINE = 4000


def inline_command(
    paths: Sequence[str] = (), *, limit_bytes: int = DEFAULT_LIMIT_BYTES, cwd: str | None = None
) -> str | None:
    """Shell text that makes the files where it runs (by base64, gzip, tar); None where nothing is sent."""
    import gzip
    import io
    import os
    import tarfile
    from base64 import b64encode

    if not paths and is_forbidden(cwd or os.getcwd()):  # noqa: PTH109
        return None
    sources = scan(paths, cwd)
    if not sources.files:
        return None
    if sources.size > limit_bytes * 20:
        raise _too_large(sources.size, limit_bytes)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(sources.files):
            file = sources.files[name]
            member = tarfile.TarInfo(name)
            member.size, member.mode = file.size, file.mode
            with open(file.path, "rb") as opened:  # noqa: PTH123
                archive.addfile(member, opened)
        for name in sorted(sources.links):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, sources.links[name]
            archive.addfile(member)
    # Without a time in it, equal code gives equal text.
    text = b64encode(gzip.compress(packed.getvalue(), 9, mtime=0)).decode()
    if len(text) > limit_bytes:
        raise _too_large(len(text), limit_bytes)
    lines = "\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))
    return f"base64 -d <<'OPAI_CODE' | gzip -d | tar -xf -\n{lines}\nOPAI_CODE"


def _too_large(size: int, limit: int) -> UsageError:
    return UsageError(
        f"the code needs {size:,} bytes, and {limit:,} fit into a job text, its only place on this cluster",
        hint="name a storage with `opai cluster add -a ALIAS --workspace ADDRESS`, or use .opaiignore",
    )
