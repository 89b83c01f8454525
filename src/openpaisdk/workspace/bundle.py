"""The runtime as text, for clusters that know nothing of us: one small file inside the job."""

# ruff: noqa: PTH118, PTH120, PTH123, PTH208 - see scan
from __future__ import annotations

import os

_FOR_NOTEBOOKS = ("notebook_run.py", "only.py", "stand_in.py")
_PACKAGE = '"""What programs inside a job import: `from openpai.runtime import Runtime`."""\n'
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
LINE = 4000


def runtime_text(*, notebook: bool = False) -> str:
    """A zip archive of `openpai.runtime`, compressed as a whole, in base64; equal for equal contents."""
    from io import BytesIO
    from zipfile import ZipFile, ZipInfo
    from zlib import compress

    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "runtime")
    packed = BytesIO()
    # Python reads modules from it as it is, and one stream of all of them is smaller than each by itself.
    with ZipFile(packed, "w") as archive:
        archive.writestr(ZipInfo("openpai/__init__.py", _LONG_AGO), _PACKAGE)
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py") and (notebook or name not in _FOR_NOTEBOOKS):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    archive.writestr(ZipInfo(f"openpai/runtime/{name}", _LONG_AGO), file.read())
    return as_text(compress(packed.getvalue(), 9))


def as_text(data: bytes) -> str:
    """Base64 in lines that any tool reads."""
    from base64 import b64encode

    text = b64encode(data).decode()
    return "\n".join(text[at : at + LINE] for at in range(0, len(text), LINE))
