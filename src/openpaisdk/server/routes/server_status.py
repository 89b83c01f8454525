"""The server about itself: where it runs, with what, how loaded; and stopping it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec

from openpaisdk.errors import AccessError
from openpaisdk.server.http import Call, Message, endpoint
from openpaisdk.version import __version__


class ServerStatus(msgspec.Struct):
    """What `opai server status` shows."""

    pid: int
    version: str
    uri: str
    data_dir: str
    launcher: str
    local: bool
    started_at: float
    capacity: dict[str, int]
    load: dict[str, int]
    jobs: dict[str, int]


@endpoint("GET", "/api/v2/server", guard="check-admin", returns=ServerStatus)
async def get_server(call: Call) -> ServerStatus:
    """Pid, address, version, data folder, launcher, capacity, load, and jobs by state."""
    services = call.services
    usage = services.loop.usage()
    load: dict[str, Any] = {"cpu": 0, "memory_mb": 0, "gpu": 0}
    for node in usage.nodes.values():
        for name in load:
            load[name] += getattr(node.used, name)
    return ServerStatus(
        pid=os.getpid(),
        version=__version__,
        uri=services.uri,
        data_dir=str(services.settings.data_dir),
        launcher=services.launcher.name,
        local=services.settings.local,
        started_at=services.started_at,
        capacity=services.capacity_view(),
        load=load,
        jobs=services.jobs.counts(),
    )


@endpoint("POST", "/api/v2/server/stop", guard="admin", status=202, returns=Message, errors=(403,))
async def stop_server(call: Call) -> Message:
    """Stop a local server; running tasks go on, and the next server takes them up."""
    if not call.services.settings.local:
        raise AccessError("Only a local server can be stopped this way.", hint="stop it where it was started")
    # The answer has to leave before the listener closes.
    asyncio.get_running_loop().call_later(0.05, call.services.request_stop)
    return Message("The server stops; running tasks go on.")


ENDPOINTS = [get_server, stop_server]
