"""Accounts: reading them, and what an admin or their owner may change."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from openpaisdk.errors import AccessError, UsageError
from openpaisdk.server.accounts import ADMIN_GROUP, DEFAULT_GROUP, Accounts, User, no_group, no_user
from openpaisdk.server.auth import Caller, require_self_or_admin
from openpaisdk.server.http import Call, Message, endpoint
from openpaisdk.server.schemas import Email, GroupName, NewPassword, UserName

_BASES = ("/api/v2/users", "/api/v2/user")


def paths(tail: str = "") -> tuple[str, ...]:
    """A path under both names of this resource."""
    return tuple(base + tail for base in _BASES)


class UserView(msgspec.Struct):
    """An account as clients see it."""

    username: str
    grouplist: list[str]
    email: str
    extension: dict[str, Any]
    admin: bool
    virtualCluster: list[str]
    storageConfig: list[str]


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    """An account to be created."""

    username: UserName
    password: NewPassword
    email: Email = ""
    virtualCluster: list[GroupName] = []
    admin: bool = False
    extension: dict[str, Any] = {}


class UserChange(msgspec.Struct, forbid_unknown_fields=True):
    """What an admin changes about an account."""

    username: UserName
    email: Email | UnsetType = UNSET
    virtualCluster: list[GroupName] | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    password: NewPassword | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class UserUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """Without `patch`, everything has to be given."""

    data: UserChange
    patch: bool = False


class SelfChange(msgspec.Struct, forbid_unknown_fields=True):
    """What users change about themselves."""

    username: UserName
    email: Email | UnsetType = UNSET
    newPassword: NewPassword | UnsetType = UNSET
    oldPassword: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class SelfUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """Without `patch`, e-mail and password have to be given."""

    data: SelfChange
    patch: bool = False


def view(accounts: Accounts, user: User, caller: Caller) -> UserView:
    """An account without what only its owner may know."""
    rights = accounts.rights(user.name)
    return UserView(
        username=user.name,
        grouplist=list(user.groups),
        email=user.email,
        extension=_shown(user.extension, mine=caller.admin or caller.name == user.name),
        admin=rights.admin,
        virtualCluster=list(rights.virtual_clusters),
        storageConfig=list(rights.storages),
    )


def _shown(extension: dict[str, Any], *, mine: bool) -> dict[str, Any]:
    hidden = () if mine else ("githubPAT", "boundedClusters")
    found = {key: value for key, value in extension.items() if key not in hidden}
    if isinstance(found.get("jobSSH"), dict):
        found["jobSSH"] = {key: value for key, value in found["jobSSH"].items() if key != "key"}
    return found


@endpoint("GET", (*paths("/{user}"), "/api/v1/user/{user}"), returns=UserView, errors=(400,))
async def get_user(call: Call) -> UserView:
    """One account; an unknown one is answered with 400."""
    accounts: Accounts = call.services.accounts
    user = accounts.users.get(call.path["user"])
    if user is None:
        raise no_user(call.path["user"], status=400)
    return view(accounts, user, call.caller)


@endpoint("GET", paths(), returns=list[UserView])
async def list_users(call: Call) -> list[UserView]:
    """All accounts, by name."""
    accounts: Accounts = call.services.accounts
    return [view(accounts, user, call.caller) for _, user in sorted(accounts.users.items())]


@endpoint("POST", paths(), guard="admin", body=NewUser, status=201, returns=Message, errors=(404, 409))
async def create_user(call: Call) -> Message:
    """Create an account."""
    accounts: Accounts = call.services.accounts
    new: NewUser = call.body
    for name in new.virtualCluster:
        if name not in accounts.groups:
            raise no_group(name)
    groups = _regrouped(accounts, (DEFAULT_GROUP,), new.virtualCluster, new.admin)
    hashed = "" if new.username in accounts.users else await accounts.hash(new.password)
    await accounts.create_user(User(new.username, hashed, new.email, new.extension, groups))
    return Message("User is created successfully")


@endpoint("PUT", paths(), guard="admin", body=UserUpdate, status=201, returns=Message, errors=(404,))
async def update_user(call: Call) -> Message:
    """Change an account."""
    accounts: Accounts = call.services.accounts
    change: UserChange = call.body.data
    patch: bool = call.body.patch
    if not patch:
        _require_all(change, ("email", "virtualCluster", "admin", "password", "extension"))
    user = accounts.users.get(change.username)
    if user is None:
        raise no_user(change.username)
    clusters = None if change.virtualCluster is UNSET else change.virtualCluster
    admin = None if change.admin is UNSET else change.admin
    _regrouped(accounts, user.groups, clusters, admin)

    def apply(latest: User) -> User:
        return replace(
            latest,
            email=latest.email if change.email is UNSET else change.email,
            extension=_merged(latest.extension, change.extension, patch=patch),
            groups=_regrouped(accounts, latest.groups, clusters, admin),
        )

    await accounts.change_user(change.username, apply)
    if change.password is not UNSET:
        await accounts.change_password(change.username, change.password)
    return Message("User is updated successfully")


@endpoint("PUT", paths("/me"), guard="user", body=SelfUpdate, status=201, returns=Message)
async def update_self(call: Call) -> Message:
    """Change one's own e-mail, password or extension."""
    accounts: Accounts = call.services.accounts
    change: SelfChange = call.body.data
    patch: bool = call.body.patch
    if change.username != call.caller.name:
        raise AccessError(f"User {call.caller.name} may not change user {change.username}.")
    if not patch:
        _require_all(change, ("email", "newPassword"))
    if change.newPassword is not UNSET:
        if change.oldPassword is UNSET:
            raise UsageError("oldPassword is required with newPassword.")
        await accounts.require_password(call.caller.name, change.oldPassword)

    def apply(latest: User) -> User:
        return replace(
            latest,
            email=latest.email if change.email is UNSET else change.email,
            extension=_merged(latest.extension, change.extension, patch=True),
        )

    await accounts.change_user(call.caller.name, apply)
    if change.newPassword is not UNSET:
        await accounts.change_password(call.caller.name, change.newPassword)
    return Message("User is updated successfully")


@endpoint("DELETE", paths("/{user}"), guard="admin", returns=Message)
async def delete_user(call: Call) -> Message:
    """Remove an account that is not an admin's."""
    await call.services.accounts.delete_user(call.path["user"])
    return Message("User is removed successfully")


class GroupListBody(msgspec.Struct, forbid_unknown_fields=True):
    """The groups a user is to be in."""

    grouplist: list[GroupName]


class GroupBody(msgspec.Struct, forbid_unknown_fields=True):
    """The group a user joins or leaves."""

    groupname: GroupName


class ExtensionBody(msgspec.Struct, forbid_unknown_fields=True):
    """Keys to be set in an extension."""

    extension: dict[str, Any]


class ClustersBody(msgspec.Struct, forbid_unknown_fields=True):
    """The virtual clusters a user may use."""

    virtualCluster: list[GroupName]


class PasswordBody(msgspec.Struct, forbid_unknown_fields=True):
    """A new password; who is not an admin gives the old one too."""

    newPassword: NewPassword
    oldPassword: str | None = None


class EmailBody(msgspec.Struct, forbid_unknown_fields=True):
    """A new e-mail address."""

    email: Email


class AdminBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a user is to be an admin."""

    admin: bool


@endpoint("PUT", paths("/{user}/grouplist"), guard="admin", body=GroupListBody, status=201, returns=Message)
async def set_groups(call: Call) -> Message:
    """Put a user in exactly these groups."""
    accounts: Accounts = call.services.accounts
    for name in call.body.grouplist:
        if name not in accounts.groups:
            raise no_group(name)
    groups = tuple(dict.fromkeys(call.body.grouplist))
    return await _change(call, lambda user: replace(user, groups=groups))


@endpoint("PUT", paths("/{user}/group"), guard="admin", body=GroupBody, status=201, returns=Message)
async def join_group(call: Call) -> Message:
    """Add a user to a group."""
    name = call.body.groupname
    if name not in call.services.accounts.groups:
        raise no_group(name)
    return await _change(call, lambda user: replace(user, groups=tuple(dict.fromkeys((*user.groups, name)))))


@endpoint("DELETE", paths("/{user}/group"), guard="admin", body=GroupBody, status=201, returns=Message)
async def leave_group(call: Call) -> Message:
    """Take a user out of a group."""
    left = call.body.groupname
    return await _change(
        call, lambda user: replace(user, groups=tuple(name for name in user.groups if name != left))
    )


@endpoint("PUT", paths("/{user}/extension"), guard="user", body=ExtensionBody, status=201, returns=Message)
async def extend_user(call: Call) -> Message:
    """Set keys in a user's extension."""
    require_self_or_admin(call.caller, call.path["user"])
    given = call.body.extension
    return await _change(call, lambda user: replace(user, extension={**user.extension, **given}))


@endpoint(
    "PUT", paths("/{user}/virtualcluster"), guard="admin", body=ClustersBody, status=201, returns=Message
)
async def set_virtual_clusters(call: Call) -> Message:
    """Let a user use exactly these virtual clusters besides `default`."""
    accounts: Accounts = call.services.accounts
    name = call.path["user"]
    if name not in accounts.users:
        raise no_user(name)
    if accounts.is_admin(name):
        raise AccessError(f"Admin {name} may use every virtual cluster; this cannot be changed.")
    wanted = call.body.virtualCluster
    return await _change(
        call, lambda user: replace(user, groups=_regrouped(accounts, user.groups, wanted, None))
    )


@endpoint("PUT", paths("/{user}/password"), guard="user", body=PasswordBody, status=201, returns=Message)
async def set_password(call: Call) -> Message:
    """Set a password and end that user's sessions."""
    accounts: Accounts = call.services.accounts
    name = call.path["user"]
    require_self_or_admin(call.caller, name)
    if not call.caller.admin:
        await accounts.require_password(name, call.body.oldPassword)
    await accounts.change_password(name, call.body.newPassword)
    return Message("User password is updated successfully")


@endpoint("PUT", paths("/{user}/email"), guard="user", body=EmailBody, status=201, returns=Message)
async def set_email(call: Call) -> Message:
    """Set an e-mail address."""
    require_self_or_admin(call.caller, call.path["user"])
    email = call.body.email
    return await _change(call, lambda user: replace(user, email=email))


@endpoint("PUT", paths("/{user}/admin"), guard="admin", body=AdminBody, status=201, returns=Message)
async def set_admin(call: Call) -> Message:
    """Make a user an admin, or no longer."""
    accounts: Accounts = call.services.accounts
    admin = call.body.admin
    return await _change(
        call, lambda user: replace(user, groups=_regrouped(accounts, user.groups, None, admin))
    )


async def _change(call: Call, change: Any) -> Message:
    await call.services.accounts.change_user(call.path["user"], change)
    return Message("User is updated successfully")


def _regrouped(
    accounts: Accounts, groups: tuple[str, ...], clusters: list[str] | None, admin: bool | None
) -> tuple[str, ...]:
    """The groups of a user who is to have these virtual clusters and to be an admin or not."""
    kept = list(groups)
    if clusters is not None:
        for name in clusters:
            if not _is_cluster_group(accounts, name):
                raise UsageError(f"Virtual cluster {name} is not found.", code="NoVirtualClusterError")
        kept = [name for name in kept if not _is_cluster_group(accounts, name)]
        kept = [DEFAULT_GROUP, *clusters, *kept]
    if admin:
        kept.append(ADMIN_GROUP)
    elif admin is False:
        kept = [name for name in kept if name not in accounts.groups or not accounts.groups[name].acls.admin]
    return tuple(dict.fromkeys(kept))


def _is_cluster_group(accounts: Accounts, name: str) -> bool:
    group = accounts.groups.get(name)
    return group is not None and group.acls.virtualClusters == [name] and not group.acls.admin


def _merged(old: dict[str, Any], given: dict[str, Any] | UnsetType, *, patch: bool) -> dict[str, Any]:
    if isinstance(given, UnsetType):
        return old
    return {**old, **given} if patch else given


def _require_all(change: Any, names: tuple[str, ...]) -> None:
    missing = [name for name in names if getattr(change, name) is UNSET]
    if missing:
        raise UsageError(
            f"data.{missing[0]} is required when patch is false.", hint="send patch: true to change a part"
        )


ENDPOINTS = [
    get_user,
    list_users,
    create_user,
    update_user,
    update_self,
    delete_user,
    set_groups,
    join_group,
    leave_group,
    extend_user,
    set_virtual_clusters,
    set_password,
    set_email,
    set_admin,
]
