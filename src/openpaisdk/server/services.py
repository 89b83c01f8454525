"""Everything a request may need, put together in one place."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any

from openpaisdk.launchers import Capacity, Launcher
from openpaisdk.scheduler import Node, Quota, Scheduler, VirtualCluster
from openpaisdk.server.accounts import Accounts
from openpaisdk.server.database import Database
from openpaisdk.server.exec import ExecSessions
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.loop import Loop
from openpaisdk.server.settings import GRACE_SECONDS, Settings
from openpaisdk.server.watch import Watcher

log = logging.getLogger(__name__)


class Services:
    """The parts of one running server; make it on the event loop, then `start` it."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        accounts: Accounts,
        launcher: Launcher,
        *,
        uri: str,
        request_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.db = db
        self.accounts = accounts
        self.launcher = launcher
        self.uri = uri
        self.request_stop = request_stop
        self.jobs = JobStore(db)
        self.capacity = launcher.capacity()
        self.loop = Loop(
            settings,
            db,
            self.jobs,
            accounts,
            launcher,
            make_scheduler(settings, self.capacity),
            addresses=_addresses(settings, self.capacity),
            uri=uri,
        )
        self.watcher = Watcher()
        self.exec = ExecSessions(launcher)
        self.details: dict[tuple[int, int | None], tuple[int, asyncio.Future[bytes]]] = {}
        self.closing = asyncio.Event()
        self.link_key = secrets.token_bytes(32)
        self.started_at = time.time()

    def start(self) -> None:
        """Take up stored jobs and begin to decide; code that nobody has asked for in a month is dropped."""
        needed = self.loop.start()
        self._sweeping = asyncio.get_running_loop().run_in_executor(None, self._sweep, needed)

    def _sweep(self, needed: list[str]) -> None:
        from openpaisdk.server.files.blobs import sweep_all

        try:
            sweep_all(self.settings.files, keep=needed)
        except OSError as error:
            log.warning("old code could not be dropped: %s", error)

    async def close(self) -> None:
        """Let go of everything; running tasks go on."""
        self.closing.set()
        await asyncio.gather(self._sweeping, return_exceptions=True)
        self.loop.changes.tell_all()
        await self.exec.close()
        await self.loop.close()
        self.watcher.close()
        self.db.close()

    def capacity_view(self) -> dict[str, Any]:
        """What the machine has, in three numbers."""
        nodes = self.capacity.nodes if self.capacity else ()
        return {
            "cpu": sum(node.cpu for node in nodes),
            "memory_mb": sum(node.memory_mb for node in nodes),
            "gpu": sum(len(node.gpus) for node in nodes),
        }


def make_scheduler(settings: Settings, capacity: Capacity | None) -> Scheduler:
    """A scheduler over the machines of a launcher, with the shares and quotas of the settings."""
    nodes = (
        [Node(node.name, node.cpu, node.memory_mb, node.gpus) for node in capacity.nodes] if capacity else []
    )
    shares = dict(settings.virtual_clusters)
    shares.setdefault("default", max(0.0, 1.0 - sum(shares.values())))
    return Scheduler(
        nodes,
        [VirtualCluster(name, share) for name, share in shares.items()],
        quotas={user: Quota(**limits) for user, limits in settings.quotas.items()},
        hands_over=capacity is None,
        port_in_use=port_in_use,
        grace=GRACE_SECONDS,
        discreet=settings.own_jobs_only,
    )


def port_in_use(port: int) -> bool:
    """True where somebody on this machine listens on a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def _addresses(settings: Settings, capacity: Capacity | None) -> dict[str, str]:
    """Where the tasks on each node are reached: on loopback only from the machine itself."""
    nodes = capacity.nodes if capacity else ()
    if len(nodes) == 1 and settings.loopback:
        return {nodes[0].name: "127.0.0.1"}
    return {node.name: node.address for node in nodes}
