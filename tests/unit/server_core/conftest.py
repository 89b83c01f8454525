"""A server without sockets and without processes: the real store, scheduler and loop over a fake launcher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.launcher import FakeLauncher, FakeWorld
from openpaisdk.server.accounts import Accounts, User
from openpaisdk.server.app import build_app
from openpaisdk.server.database import Database
from openpaisdk.server.rows import JobRow
from openpaisdk.server.services import Services
from openpaisdk.server.settings import Settings
from support.asgi import Client, Reply


def job_spec(name: str = "job", command: str = "exit 0", **changes: Any) -> dict[str, Any]:
    role = {
        "instances": changes.pop("instances", 1),
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": changes.pop("gpu", 0)},
        "commands": [command],
    }
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "ubuntu"}],
        "taskRoles": changes.pop("roles", {"worker": role}),
        **changes,
    }


class World(FakeWorld):
    """Without a shell, what the server puts before a script to steer one means nothing."""

    def run(self, handle: str) -> None:
        task = self.tasks[handle]
        task.lines = [line for line in task.lines if not line.startswith("trap 'trap")]
        super().run(handle)


class Server:
    """One server life over a world that outlives it; `restart` is a kill and a new start."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.world = World()
        self._folder = folder
        self._settings = settings
        self.loop = asyncio.new_event_loop()
        self._start()

    def _start(self) -> None:
        async def make() -> Services:
            settings = Settings(data_dir=self._folder, local=True, **self._settings)
            db = Database(settings.database)
            accounts = Accounts(db, virtual_clusters=settings.virtual_clusters)
            self.token = accounts.ensure_local_user("ann")
            if "bob" not in accounts.users:
                await accounts.create_user(User("bob", "", "", {}, ("default",)))
            self.bob = await accounts.tokens.issue("bob", "login")
            services = Services(
                settings,
                db,
                accounts,
                FakeLauncher(self.world),
                uri="http://127.0.0.1:1",
                request_stop=self.stopped.set,
            )
            services.start()
            return services

        self.stopped = asyncio.Event()
        self.services = self.run(make())
        self.client = Client(build_app(self.services), self.token, self.loop)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(awaitable, 20))

    def restart(self) -> None:
        """What a kill leaves behind: the store and the world, nothing else."""
        self.run(self._vanish())
        self._start()

    async def _vanish(self) -> None:
        services = self.services
        await services.launcher.close()
        for task in (services.loop._runner, *services.loop.tasks._busy):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if services.loop._timer is not None:
            services.loop._timer.cancel()
        services.watcher.close()
        services.db.close()

    def close(self) -> None:
        self.run(self.services.close())
        self.client.close()

    def submit(self, spec: dict[str, Any], *, token: str | None = None, key: str | None = None) -> Reply:
        """As our own client does it."""
        headers = {"content-type": "text/yaml", "prefer": "refuse-unfit"}
        if key:
            headers["idempotency-key"] = key
        client = self.client if token is None else self.client.acting_as(token)
        return client.post("/api/v2/jobs", body=json.dumps(spec).encode(), headers=headers)

    def row(self, name: str = "job", user: str = "ann") -> JobRow:
        found = self.services.jobs.find(user, name)
        assert found is not None
        return found

    def wait(self, until: Callable[[JobRow], bool], name: str = "job") -> JobRow:
        """The job once `until` holds; waits for changes, not for time."""
        job_id = self.row(name).id

        async def look() -> JobRow:
            while True:
                row = self.services.jobs.by_id(job_id)
                assert row is not None
                if until(row):
                    return row
                await self.services.loop.changes.wait(job_id, 10)

        return self.run(look())

    def finished(self, name: str = "job") -> JobRow:
        return self.wait(lambda row: row.finished, name)

    def running(self, name: str = "job") -> JobRow:
        return self.wait(lambda row: row.state == "RUNNING", name)

    def handle(self, name: str = "job", number: int = 0) -> str:
        return self.services.jobs.handles(self.row(name).id)[number]

    def end(self, code: int = 0, *, name: str = "job", number: int = 0, oom: bool = False) -> None:
        """The task ends by itself."""

        async def act() -> None:
            self.world.end(self.handle(name, number), code, oom=oom)

        self.run(act())

    def detail(self, name: str = "job") -> dict[str, Any]:
        return self.client.get(f"/api/v2/jobs/ann~{name}").json()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(**settings: Any) -> Server:
        made.append(Server(tmp_path, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def spec() -> Callable[..., dict[str, Any]]:
    return job_spec
