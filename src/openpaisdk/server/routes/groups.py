"""Groups: sets of users with the same rights."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from openpaisdk.errors import UsageError
from openpaisdk.server.accounts import Accounts, Group, no_group
from openpaisdk.server.http import Call, Message, endpoint
from openpaisdk.server.routes.users import ExtensionBody
from openpaisdk.server.schemas import GroupName

_BASES = ("/api/v2/groups", "/api/v2/group")
DEEPEST = 32


def paths(tail: str = "") -> tuple[str, ...]:
    """A path under both names of this resource."""
    return tuple(base + tail for base in _BASES)


class GroupView(msgspec.Struct):
    """A group as clients see it."""

    groupname: str
    description: str
    externalName: str
    extension: dict[str, Any]


class NewGroup(msgspec.Struct, forbid_unknown_fields=True):
    """A group to be created."""

    groupname: GroupName
    description: str = ""
    externalName: str = ""
    extension: dict[str, Any] = {}


class GroupChange(msgspec.Struct, forbid_unknown_fields=True):
    """What is changed about a group."""

    groupname: GroupName
    description: str | UnsetType = UNSET
    externalName: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class GroupUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """With `patch`, the keys of the extension are merged; without, what is not given becomes empty."""

    data: GroupChange
    patch: bool = False


class Member(msgspec.Struct):
    """A user in a group."""

    username: str
    clusterAdmin: bool


class DescriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    """A new description."""

    description: str


class ExternalNameBody(msgspec.Struct, forbid_unknown_fields=True):
    """A new external name."""

    externalName: str


class DataBody(msgspec.Struct, forbid_unknown_fields=True):
    """A value for one key deep in the extension."""

    data: Any


def _view(group: Group) -> GroupView:
    return GroupView(group.name, group.description, group.external_name, group.extension)


@endpoint("GET", paths(), returns=list[GroupView])
async def list_groups(call: Call) -> list[GroupView]:
    """All groups, by name."""
    return [_view(group) for _, group in sorted(call.services.accounts.groups.items())]


@endpoint("GET", paths("/{group}"), returns=GroupView, errors=(400,))
async def get_group(call: Call) -> GroupView:
    """One group; an unknown one is answered with 400."""
    group = call.services.accounts.groups.get(call.path["group"])
    if group is None:
        raise no_group(call.path["group"], status=400)
    return _view(group)


@endpoint("POST", paths(), guard="admin", body=NewGroup, status=201, returns=Message, errors=(409,))
async def create_group(call: Call) -> Message:
    """Create a group."""
    new: NewGroup = call.body
    await call.services.accounts.create_group(
        Group(new.groupname, new.description, new.externalName, new.extension)
    )
    return Message("Group is created successfully")


@endpoint("PUT", paths(), guard="admin", body=GroupUpdate, status=201, returns=Message)
async def update_group(call: Call) -> Message:
    """Change a group."""
    change: GroupChange = call.body.data
    patch: bool = call.body.patch

    def apply(latest: Group) -> Group:
        old = latest if patch else Group(latest.name, "", "", {})
        given = {} if change.extension is UNSET else change.extension
        return replace(
            latest,
            description=old.description if change.description is UNSET else change.description,
            external_name=old.external_name if change.externalName is UNSET else change.externalName,
            extension={**old.extension, **given},
        )

    await call.services.accounts.change_group(change.groupname, apply, status=400)
    return Message("Group is updated successfully")


@endpoint("DELETE", paths("/{group}"), guard="admin", returns=Message)
async def delete_group(call: Call) -> Message:
    """Remove a group, also from its members."""
    await call.services.accounts.delete_group(call.path["group"])
    return Message("Group is removed successfully")


@endpoint("GET", paths("/{group}/userlist"), guard="check-admin", returns=list[Member])
async def list_members(call: Call) -> list[Member]:
    """The users in a group; an unknown group has none."""
    accounts: Accounts = call.services.accounts
    wanted = call.path["group"]
    return [
        Member(name, accounts.is_admin(name))
        for name, user in sorted(accounts.users.items())
        if wanted in user.groups
    ]


@endpoint("PUT", paths("/{group}/extension"), guard="admin", body=ExtensionBody, status=201, returns=Message)
async def extend_group(call: Call) -> Message:
    """Set keys in a group's extension."""
    given = call.body.extension
    return await _change(call, lambda group: replace(group, extension={**group.extension, **given}))


@endpoint(
    "PUT", paths("/{group}/description"), guard="admin", body=DescriptionBody, status=201, returns=Message
)
async def describe_group(call: Call) -> Message:
    """Set a group's description."""
    text = call.body.description
    return await _change(call, lambda group: replace(group, description=text))


@endpoint(
    "PUT", paths("/{group}/externalname"), guard="admin", body=ExternalNameBody, status=201, returns=Message
)
async def set_external_name(call: Call) -> Message:
    """Set the name a group has elsewhere."""
    text = call.body.externalName
    return await _change(call, lambda group: replace(group, external_name=text))


@endpoint(
    "PUT", paths("/{group}/extension/{keys:path}"), guard="admin", body=DataBody, status=201, returns=Message
)
async def set_extension_key(call: Call) -> Message:
    """Set one key deep in a group's extension."""
    keys = call.path["keys"].split("/")
    data = call.body.data
    if len(keys) > DEEPEST:
        raise UsageError(f"{len(keys)} keys deep is too deep: at most {DEEPEST}.")
    return await _change(call, lambda group: replace(group, extension=_with_key(group.extension, keys, data)))


def _with_key(mapping: Any, keys: list[str], data: Any) -> dict[str, Any]:
    if not isinstance(mapping, dict):
        raise UsageError(f"{keys[0]} cannot be set inside {mapping!r}: it is not an object.")
    inner = data if len(keys) == 1 else _with_key(mapping.get(keys[0], {}), keys[1:], data)
    return {**mapping, keys[0]: inner}


async def _change(call: Call, change: Any) -> Message:
    await call.services.accounts.change_group(call.path["group"], change)
    return Message("Group is updated successfully")


ENDPOINTS = [
    list_groups,
    get_group,
    create_group,
    update_group,
    delete_group,
    list_members,
    extend_group,
    describe_group,
    set_external_name,
    set_extension_key,
]
