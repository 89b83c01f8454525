"""The runtime as tasks find it: a folder of Python files that costs nothing where nobody imports it."""

from __future__ import annotations

import os
import secrets
import shutil
import zlib
from functools import lru_cache
from pathlib import Path

from openpaisdk.version import __version__

SOURCE = Path(__file__).parent.parent / "runtime"
_PACKAGE = '"""What programs inside a job import: `from openpai.runtime import Runtime`."""\n'


@lru_cache
def runtime_folder(data_dir: Path) -> Path:
    """`<data>/runtime/<version>-<checksum>`, written the first time, for PYTHONPATH. May raise OSError."""
    files = {path.name: path.read_bytes() for path in sorted(SOURCE.glob("*.py"))}
    checksum = zlib.crc32(b"".join(files.values()))
    folder = data_dir / "runtime" / f"{__version__}-{checksum:08x}"
    if folder.is_dir():
        return folder
    draft = folder.with_name(f".{secrets.token_hex(8)}")
    package = draft / "openpai" / "runtime"
    package.mkdir(parents=True)
    (draft / "openpai" / "__init__.py").write_text(_PACKAGE, encoding="utf-8")
    for name, text in files.items():
        (package / name).write_bytes(text)
    for path in (draft, *draft.rglob("*")):
        # Tasks in containers may run as somebody else.
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        os.rename(draft, folder)  # noqa: PTH104 - must fail where the folder came up meanwhile
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder
