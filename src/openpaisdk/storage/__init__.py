"""Moving bytes: one interface over local folders, WebHDFS, our server's files and everything fsspec knows."""

from __future__ import annotations
