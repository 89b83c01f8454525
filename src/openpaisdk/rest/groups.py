"""Groups, which carry the rights of their members: virtual clusters, storages, administration."""

from __future__ import annotations

from openpaisdk.rest.calls import Calls
from openpaisdk.transport import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Groups(Calls):
    """Groups of users."""

    def groups(self) -> list[dict[str, Any]]:
        """Every group."""
        return self._array("GET", "/api/v2/groups")

    def group(self, name: str) -> dict[str, Any]:
        """One group."""
        return self._object("GET", f"/api/v2/groups/{quote(name)}")

    def group_members(self, name: str) -> list[dict[str, Any]]:
        """Who is in a group (`username`, `clusterAdmin`); empty for an unknown group. For admins."""
        return self._array("GET", f"/api/v2/groups/{quote(name)}/userlist")

    def create_group(
        self,
        name: str,
        *,
        description: str = "",
        external_name: str = "",
        extension: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Make a group. For admins."""
        data = {
            "groupname": name,
            "description": description,
            "externalName": external_name,
            "extension": extension or {},
        }
        return self._object("POST", "/api/v2/groups", send=data)

    def update_group(
        self,
        name: str,
        *,
        description: str | None = None,
        external_name: str | None = None,
        extension: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Change what is given and leave the rest. For admins."""
        data: dict[str, Any] = {"groupname": name}
        for key, value in (
            ("description", description),
            ("externalName", external_name),
            ("extension", extension),
        ):
            if value is not None:
                data[key] = value
        return self._object("PUT", "/api/v2/groups", send={"patch": True, "data": data}, safe=True)

    def delete_group(self, name: str) -> dict[str, Any]:
        """Delete a group and take everybody out of it. For admins."""
        return self._object("DELETE", f"/api/v2/groups/{quote(name)}")

    def set_group_extension(self, name: str, extension: dict[str, Any]) -> dict[str, Any]:
        """Replace a group's free-form data. For admins."""
        return self._put_group(name, "extension", {"extension": extension})

    def set_group_key(self, name: str, keys: Sequence[str], value: Any) -> dict[str, Any]:
        """Set one nested key of a group's free-form data. For admins."""
        path = "/".join(["extension", *map(quote, keys)])
        return self._put_group(name, path, {"data": value})

    def set_group_description(self, name: str, description: str) -> dict[str, Any]:
        """Change a description. For admins."""
        return self._put_group(name, "description", {"description": description})

    def set_group_external_name(self, name: str, external_name: str) -> dict[str, Any]:
        """Change the name the group has in a directory service. For admins."""
        return self._put_group(name, "externalname", {"externalName": external_name})

    def _put_group(self, name: str, part: str, data: dict[str, Any]) -> dict[str, Any]:
        return self._object("PUT", f"/api/v2/groups/{quote(name)}/{part}", send=data, safe=True)
