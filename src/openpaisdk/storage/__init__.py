"""Moving bytes: one interface over local folders, WebHDFS, our server's files and everything fsspec knows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLACES = {
    "BytesSource": "contract",
    "Entry": "contract",
    "FileSource": "contract",
    "FsspecStorage": "elsewhere",
    "LocalStorage": "local",
    "Progress": "trees",
    "WebHDFS": "webhdfs",
    "download": "downloading",
    "has_files": "opening",
    "open_storage": "opening",
    "upload": "uploading",
    "workspace_of": "opening",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'openpaisdk.storage' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"openpaisdk.storage.{_PLACES[name]}"), name)
