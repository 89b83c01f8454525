"""A server's HTTP surface over real accounts in a temporary database, without jobs or a scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openpaisdk.scheduler.model import NodeUsage, Resources, Usage, VirtualClusterUsage
from openpaisdk.server import auth
from openpaisdk.server.accounts import Accounts, User
from openpaisdk.server.app import build_app
from openpaisdk.server.database import Database
from support.asgi import Client


class Clock:
    """Time that moves only when told."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """scrypt at its real cost would be most of the time these tests take."""
    monkeypatch.setitem(auth._COST, "n", 2)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "server.db", schemas=("openpaisdk.server.accounts",))
    yield database
    database.close()


@pytest.fixture
def accounts(db: Database, clock: Clock) -> Accounts:
    """`admin`, `alice` and `bob`, each with a password of the form `alice-secret`."""
    found = Accounts(db, virtual_clusters=("default", "vision"), clock=clock)
    for name, groups in {
        "admin": ("default", "admingroup"),
        "alice": ("default",),
        "bob": ("default",),
    }.items():
        found._add_now(User(name, auth.hash_password(f"{name}-secret"), "", {}, groups))
    return found


def usage() -> Usage:
    """Two virtual clusters on one machine with 4 CPUs and 2 GPUs, half of it in use."""
    total, half, none = Resources(4, 8192, 2), Resources(2, 4096, 1), Resources()
    return Usage(
        {
            "default": VirtualClusterUsage(half, half, total, running_jobs=1, waiting_jobs=0),
            "vision": VirtualClusterUsage(none, half, total, running_jobs=0, waiting_jobs=0),
        },
        {"node1": NodeUsage(half, total)},
    )


@pytest.fixture
def services(accounts: Accounts, tmp_path: Path) -> Any:
    settings = SimpleNamespace(host="127.0.0.1", data_dir=tmp_path, rate_limits=None)
    return SimpleNamespace(settings=settings, accounts=accounts, loop=SimpleNamespace(usage=usage))


@pytest.fixture
def anonymous(services: Any) -> Iterator[Client]:
    client = Client(build_app(services))
    yield client
    client.close()


def _login(client: Client, name: str) -> Client:
    accounts = client.app.services.accounts
    return client.acting_as(client.run(accounts.tokens.issue(name, "login")))


@pytest.fixture
def admin(anonymous: Client) -> Client:
    return _login(anonymous, "admin")


@pytest.fixture
def alice(anonymous: Client) -> Client:
    return _login(anonymous, "alice")


@pytest.fixture
def bob(anonymous: Client) -> Client:
    return _login(anonymous, "bob")


@pytest.fixture
def robot(anonymous: Client) -> Client:
    """An application token of the admin."""
    accounts = anonymous.app.services.accounts
    return anonymous.acting_as(anonymous.run(accounts.tokens.issue("admin", "application")))
