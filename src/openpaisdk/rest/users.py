"""Users: reading is for everybody, writing for admins and partly for oneself."""

from __future__ import annotations

from openpaisdk.rest.calls import Calls
from openpaisdk.transport import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Users(Calls):
    """User accounts."""

    def users(self) -> list[dict[str, Any]]:
        """Every user."""
        return self._array("GET", "/api/v2/users")

    def get_user(self, name: str | None = None) -> dict[str, Any]:
        """One user, me unless named."""
        return self._object("GET", f"/api/v2/users/{quote(name or self.user)}")

    def create_user(
        self,
        name: str,
        password: str,
        *,
        email: str = "",
        virtual_clusters: Sequence[str] = (),
        admin: bool = False,
        extension: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Make an account. For admins."""
        data = {
            "username": name,
            "password": password,
            "email": email,
            "virtualCluster": list(virtual_clusters),
            "admin": admin,
            "extension": extension or {},
        }
        return self._object("POST", "/api/v2/users", send=data)

    def update_user(
        self,
        name: str,
        *,
        password: str | None = None,
        email: str | None = None,
        virtual_clusters: Sequence[str] | None = None,
        admin: bool | None = None,
        extension: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Change what is given and leave the rest. For admins."""
        data = _given(
            username=name,
            password=password,
            email=email,
            virtualCluster=None if virtual_clusters is None else list(virtual_clusters),
            admin=admin,
            extension=extension,
        )
        return self._object("PUT", "/api/v2/users", send={"patch": True, "data": data}, safe=True)

    def update_me(
        self, *, email: str | None = None, extension: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Change my own account; the password has `set_password`, because servers ignore it here."""
        data = _given(username=self.user, email=email, extension=extension)
        return self._object("PUT", "/api/v2/users/me", send={"patch": True, "data": data}, safe=True)

    def delete_user(self, name: str) -> dict[str, Any]:
        """Delete an account. For admins; admins themselves cannot be deleted."""
        return self._object("DELETE", f"/api/v2/users/{quote(name)}")

    def set_user_groups(self, name: str, groups: Sequence[str]) -> dict[str, Any]:
        """Replace the groups of a user. For admins."""
        return self._put_user(name, "grouplist", {"grouplist": list(groups)})

    def add_user_to_group(self, name: str, group: str) -> dict[str, Any]:
        """Add a user to a group. For admins."""
        return self._put_user(name, "group", {"groupname": group})

    def remove_user_from_group(self, name: str, group: str) -> dict[str, Any]:
        """Take a user out of a group. For admins."""
        path = f"/api/v2/users/{quote(name)}/group"
        return self._object("DELETE", path, send={"groupname": group}, safe=True)

    def set_user_extension(self, name: str, extension: dict[str, Any]) -> dict[str, Any]:
        """Merge keys into a user's free-form data. For oneself and admins."""
        return self._put_user(name, "extension", {"extension": extension})

    def set_user_virtual_clusters(self, name: str, virtual_clusters: Sequence[str]) -> dict[str, Any]:
        """Replace the virtual clusters that a user may use. For admins."""
        return self._put_user(name, "virtualcluster", {"virtualCluster": list(virtual_clusters)})

    def set_password(self, name: str, new: str, *, old: str | None = None) -> dict[str, Any]:
        """Change a password, which ends the user's logins. Admins need not know the old one."""
        return self._put_user(name, "password", _given(oldPassword=old, newPassword=new))

    def set_email(self, name: str, email: str) -> dict[str, Any]:
        """Change an address. For oneself and admins."""
        return self._put_user(name, "email", {"email": email})

    def set_admin(self, name: str, admin: bool) -> dict[str, Any]:
        """Make a user an admin, or no longer one. For admins."""
        return self._put_user(name, "admin", {"admin": admin})

    def _put_user(self, name: str, part: str, data: dict[str, Any]) -> dict[str, Any]:
        return self._object("PUT", f"/api/v2/users/{quote(name)}/{part}", send=data, safe=True)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
