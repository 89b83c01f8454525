"""Storages that the cluster mounts into jobs."""

from __future__ import annotations

from openpaisdk.rest.calls import Calls
from openpaisdk.transport import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Storages(Calls):
    """Storages."""

    def storages(self, *, default: bool | None = None) -> list[dict[str, Any]]:
        """The storages I may use (`name`, `share`, `volumeName`, `default`); with `default` only those."""
        found = self._json("GET", "/api/v2/storages", query={"default": default})
        rows = found.get("storages", []) if isinstance(found, dict) else found
        return list(rows)

    def storage(self, name: str) -> dict[str, Any]:
        """One storage with the place and the credentials it takes to mount it."""
        return self._object("GET", f"/api/v2/storages/{quote(name)}")

    def storage_configs(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Storages in the shape that servers before 1.0 used; deprecated there, kept for reading."""
        return self._array("GET", "/api/v2/storage/config", query={"names": names})

    def storage_servers(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Storage servers in the shape that servers before 1.0 used; deprecated there, kept for reading."""
        return self._array("GET", "/api/v2/storage/server", query={"names": names})
