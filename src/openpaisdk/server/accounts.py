"""Users and groups: their rows, a mirror in memory that answers checks in microseconds, and their rights."""

from __future__ import annotations

import asyncio
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from openpaisdk.errors import AccessError, ConflictError, LoginError, NotFoundError, UsageError
from openpaisdk.server import tokens
from openpaisdk.server.auth import INVALID_TOKEN, Caller, credentials, hash_password, verify_password
from openpaisdk.server.tokens import Tokens

if TYPE_CHECKING:
    from openpaisdk.server.database import Database

SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY, password TEXT NOT NULL, email TEXT NOT NULL,
    extension TEXT NOT NULL, groups TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS groups (
    name TEXT PRIMARY KEY, description TEXT NOT NULL, external_name TEXT NOT NULL, extension TEXT NOT NULL
) WITHOUT ROWID;
"""
    + tokens.SCHEMA
)

DEFAULT_GROUP = "default"
ADMIN_GROUP = "admingroup"
HASHES_AT_ONCE = 2  # each takes 16 MB and a core for tens of milliseconds


class User(msgspec.Struct, frozen=True):
    """An account; an empty password cannot be logged in with."""

    name: str
    password: str
    email: str
    extension: dict[str, Any]
    groups: tuple[str, ...]


class Acls(msgspec.Struct):
    """What the members of a group may do."""

    admin: bool = False
    virtualClusters: list[str] = []
    storageConfigs: list[str] = []


class Group(msgspec.Struct, frozen=True):
    """A set of users with the same rights."""

    name: str
    description: str
    external_name: str
    extension: dict[str, Any]

    @property
    def acls(self) -> Acls:
        return msgspec.convert(self.extension.get("acls") or {}, Acls)


class Rights(msgspec.Struct, frozen=True):
    """The union of what a user's groups give."""

    admin: bool
    virtual_clusters: tuple[str, ...]
    storages: tuple[str, ...]
    default_storages: tuple[str, ...]


def no_user(name: str, status: int = 404) -> NotFoundError:
    """The error for an unknown user; reading one answers 400, as OpenPAI does."""
    return NotFoundError(f"User {name} is not found.", code="NoUserError", http_status=status)


def no_group(name: str, status: int = 404) -> NotFoundError:
    """The error for an unknown group; reading one answers 400, as OpenPAI does."""
    return NotFoundError(f"Group {name} is not found.", code="NoGroupError", http_status=status)


def account_name(text: str) -> str:
    """An operating system's user name in the form that a cluster accepts."""
    found = re.sub(r"[^A-Za-z0-9_.-]", "_", text)
    return found if found.strip(".") else "user"


class Accounts:
    """Everything about users, groups and their tokens. Changes are durable when the awaited call returns."""

    def __init__(
        self,
        db: Database,
        *,
        virtual_clusters: Iterable[str] = (DEFAULT_GROUP,),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._db = db
        self.tokens = Tokens(db, clock=clock)
        self.virtual_clusters: tuple[str, ...] = ()
        self._rights: dict[str, Rights] = {}
        self._changing = asyncio.Lock()
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        decode = msgspec.json.decode
        self.users = {
            row[0]: User(row[0], row[1], row[2], decode(row[3]), tuple(decode(row[4])))
            for row in db.read.execute(
                "SELECT name, password, email, extension, groups FROM users ORDER BY name"
            )
        }
        self.groups = {
            row[0]: Group(row[0], row[1], row[2], decode(row[3]))
            for row in db.read.execute(
                "SELECT name, description, external_name, extension FROM groups ORDER BY name"
            )
        }
        self.set_virtual_clusters(virtual_clusters)

    def set_virtual_clusters(self, names: Iterable[str]) -> None:
        """Tell which virtual clusters there are; each gets a group of its own. For start-up, it blocks."""
        self.virtual_clusters = tuple(dict.fromkeys([DEFAULT_GROUP, *names]))
        wanted = {
            name: Group(name, f"group of virtual cluster {name}", "", _acls(False, [name]))
            for name in self.virtual_clusters
        }
        wanted[ADMIN_GROUP] = Group(
            ADMIN_GROUP, "administrators", "", _acls(True, list(self.virtual_clusters))
        )
        missing = [group for name, group in wanted.items() if name not in self.groups]
        if missing:
            self._db.write_now(lambda conn: _save_groups(conn, missing))
        self.groups.update({group.name: group for group in missing})
        self._rights.clear()

    def first_start(self) -> str | None:
        """Create the user `admin` where nobody is admin yet; its random password, shown once, or None."""
        if any(self.is_admin(name) for name in self.users):
            return None
        password = secrets.token_urlsafe(12)
        self._add_now(User("admin", hash_password(password), "", {}, (DEFAULT_GROUP, ADMIN_GROUP)))
        return password

    def ensure_local_user(self, name: str) -> str:
        """The token of the person who owns this machine's cluster: an admin without a password."""
        name = account_name(name)
        if name not in self.users:
            self._add_now(User(name, "", "", {}, (DEFAULT_GROUP, ADMIN_GROUP)))
        return self.tokens.local_token(name)

    def _add_now(self, user: User) -> None:
        self._db.write_now(lambda conn: _save_users(conn, [user]))
        self.users[user.name] = user
        self._rights.pop(user.name, None)

    def authenticate(self, header: str | None) -> Caller:
        """Who an Authorization header stands for; LoginError when it stands for nobody."""
        text, named = credentials(header)
        token = self.tokens.check(text)
        if token.user not in self.users or (
            named is not None and (named != token.user or not token.application)
        ):
            raise LoginError(INVALID_TOKEN)
        return Caller(token.user, self.is_admin(token.user), token.application, text, token.claims())

    def issue_job_token(self, user: str, job: str) -> str:
        """A token for the tasks of `job`, valid until the job is finished."""
        return self.tokens.job_token(user, job)

    def rights(self, name: str) -> Rights:
        """What a user may do now, through all of its groups."""
        found = self._rights.get(name)
        if found is None:
            found = self._rights[name] = self._work_out_rights(name)
        return found

    def _work_out_rights(self, name: str) -> Rights:
        user = self.users.get(name)
        acls = [self.groups[group].acls for group in (user.groups if user else ()) if group in self.groups]
        admin = any(acl.admin for acl in acls)
        given = self.virtual_clusters if admin else [vc for acl in acls for vc in acl.virtualClusters]
        # A group may name one that there is no more since the server was started with other options.
        clusters = [vc for vc in given if vc in self.virtual_clusters]
        storages = [storage for acl in acls for storage in acl.storageConfigs]
        defaults = [acl.storageConfigs[0] for acl in acls if acl.storageConfigs]
        return Rights(admin, _unique(clusters), _unique(storages), _unique(defaults))

    def is_admin(self, name: str) -> bool:
        return self.rights(name).admin

    def virtual_clusters_of(self, name: str) -> tuple[str, ...]:
        """The virtual clusters a user may submit to."""
        return self.rights(name).virtual_clusters

    async def login(self, name: str, password: str) -> str:
        """A new session token; an unknown user takes as long to refuse as a wrong password."""
        user = self.users.get(name)
        correct = await self._verify(password, user.password if user else None)
        if user is None:
            raise no_user(name, status=400)
        if not correct:
            raise LoginError("Password is incorrect.", code="IncorrectPasswordError", http_status=400)
        return await self.tokens.issue(name, "login")

    async def _verify(self, password: str, stored: str | None) -> bool:
        async with self._hashing:
            return await asyncio.to_thread(verify_password, password, stored)

    async def hash(self, password: str) -> str:
        """Hash a password without holding up the event loop."""
        async with self._hashing:
            return await asyncio.to_thread(hash_password, password)

    async def create_user(self, user: User) -> None:
        """Add an account; ConflictError when the name is taken."""
        async with self._changing:
            if not re.fullmatch(r"[A-Za-z0-9_.-]+", user.name) or not user.name.strip("."):
                raise UsageError(f"{user.name!r} is not a user name: letters, digits, '_', '.' and '-' are.")
            if user.name in self.users:
                raise ConflictError(f"User {user.name} already exists.", code="ConflictUserError")
            await self._write_users([user])

    async def change_user(self, name: str, change: Callable[[User], User]) -> None:
        """Replace an account by what `change` makes of its latest state."""
        async with self._changing:
            if name not in self.users:
                raise no_user(name)
            changed = change(self.users[name])
            self._require_an_admin({**self.users, name: changed}, self.groups)
            await self._write_users([changed])

    async def change_password(self, name: str, password: str) -> None:
        """Set a password and end the user's sessions; setting the one there is changes nothing."""
        user = self.users.get(name)
        if user is None:
            raise no_user(name)
        if await self._verify(password, user.password):
            return
        hashed = await self.hash(password)
        await self.change_user(name, lambda latest: replace(latest, password=hashed))
        await self.tokens.revoke_logins(name)

    async def require_password(self, name: str, password: str | None) -> None:
        """Refuse a change of password to who does not know the present one."""
        user = self.users.get(name)
        if user is None or password is None or not await self._verify(password, user.password):
            raise AccessError("The old password is incorrect.")

    async def delete_user(self, name: str) -> None:
        """Remove an account and its tokens; admins stay."""
        async with self._changing:
            if name not in self.users:
                raise no_user(name)
            if self.is_admin(name):
                raise AccessError(f"Admin {name} cannot be removed.", code="RemoveAdminError")
            await self._db.write(
                lambda conn: conn.execute("DELETE FROM users WHERE name = ?", (name,)) and None
            )
            del self.users[name]
            self._rights.pop(name, None)
        await self.tokens.revoke_all(name)

    async def create_group(self, group: Group) -> None:
        """Add a group; ConflictError when the name is taken."""
        async with self._changing:
            if not re.fullmatch(r"[A-Za-z0-9_]+", group.name):
                raise UsageError(f"{group.name!r} is not a group name: letters, digits and '_' are.")
            if group.name in self.groups:
                raise ConflictError(f"Group {group.name} already exists.")
            await self._write_group(replace(group, extension=complete_extension(group.extension)))

    async def change_group(self, name: str, change: Callable[[Group], Group], *, status: int = 404) -> None:
        """Replace a group by what `change` makes of its latest state."""
        async with self._changing:
            if name not in self.groups:
                raise no_group(name, status)
            changed = change(self.groups[name])
            changed = replace(changed, extension=complete_extension(changed.extension))
            self._require_an_admin(self.users, {**self.groups, name: changed})
            await self._write_group(changed)

    async def delete_group(self, name: str) -> None:
        """Remove a group, also from its members; the two that everything rests on stay."""
        if name in (DEFAULT_GROUP, ADMIN_GROUP):
            raise AccessError(f"Group {name} cannot be removed.")
        async with self._changing:
            if name not in self.groups:
                raise no_group(name)
            kept = {other: group for other, group in self.groups.items() if other != name}
            self._require_an_admin(self.users, kept)
            members = [user for user in self.users.values() if name in user.groups]
            changed = [replace(user, groups=_without(user.groups, name)) for user in members]

            def remove(conn: sqlite3.Connection) -> None:
                conn.execute("DELETE FROM groups WHERE name = ?", (name,))
                _save_users(conn, changed)

            await self._db.write(remove)
            del self.groups[name]
            self.users.update({user.name: user for user in changed})
            self._rights.clear()

    def _require_an_admin(self, users: dict[str, User], groups: dict[str, Group]) -> None:
        admin_groups = {name for name, group in groups.items() if group.acls.admin}
        if any(admin_groups.intersection(user.groups) for user in users.values()):
            return
        if any(self.is_admin(name) for name in self.users):
            raise AccessError(
                "This would leave the cluster without an admin.",
                code="RemoveAdminError",
                hint="make somebody else an admin first",
            )

    async def _write_users(self, changed: list[User]) -> None:
        await self._db.write(lambda conn: _save_users(conn, changed))
        for user in changed:
            self.users[user.name] = user
            self._rights.pop(user.name, None)

    async def _write_group(self, group: Group) -> None:
        await self._db.write(lambda conn: _save_groups(conn, [group]))
        self.groups[group.name] = group
        self._rights.clear()


def complete_extension(extension: dict[str, Any]) -> dict[str, Any]:
    """Fill in what every group's extension has; UsageError when its `acls` is not what it should be."""
    given = extension.get("acls", {})
    try:
        msgspec.convert(given, Acls)
    except msgspec.ValidationError as error:
        raise UsageError(f"extension.acls is not valid: {error}.") from error
    return {**extension, "acls": {"admin": False, "virtualClusters": [], **given}}


def _acls(admin: bool, virtual_clusters: list[str]) -> dict[str, Any]:
    return {"acls": {"admin": admin, "virtualClusters": virtual_clusters, "storageConfigs": []}}


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(kept for kept in names if kept != name)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _save_users(conn: sqlite3.Connection, users: list[User]) -> None:
    rows = [
        (user.name, user.password, user.email, _json(user.extension), _json(user.groups)) for user in users
    ]
    conn.executemany("INSERT OR REPLACE INTO users VALUES (?, ?, ?, ?, ?)", rows)


def _save_groups(conn: sqlite3.Connection, groups: list[Group]) -> None:
    rows = [(group.name, group.description, group.external_name, _json(group.extension)) for group in groups]
    conn.executemany("INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?)", rows)
