"""The server's files: homes and a shared area through WebHDFS, and code by content for jobs."""

from __future__ import annotations

import re
from typing import Any

from starlette.routing import BaseRoute, Mount

from openpaisdk.server.files.blob_routes import ENDPOINTS
from openpaisdk.server.files.blobs import lay_out, sweep_all
from openpaisdk.server.files.webhdfs import files_of, webhdfs_app

__all__ = ["ENDPOINTS", "files_of", "lay_out", "routes", "sweep_all", "webhdfs_app"]


def routes(services: Any) -> list[BaseRoute]:
    """What the server mounts beside its REST endpoints."""
    mount = Mount("/webhdfs/v1", app=webhdfs_app(services))
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)  # names may hold line breaks
    return [mount]
