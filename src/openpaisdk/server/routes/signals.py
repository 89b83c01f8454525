"""Signals from outside to the callbacks of a running job."""

from __future__ import annotations

from typing import Literal

import msgspec

from openpaisdk.errors import ConflictError
from openpaisdk.server.http import Call, endpoint
from openpaisdk.server.routes.finding import find_job, require_owner, running_tasks
from openpaisdk.server.signalling import deliver


class SignalRequest(msgspec.Struct):
    """The event to call for, in one task (role/index) or in all that listen for it."""

    name: Literal["checkpoint"]
    task: str | None = None


class Signalled(msgspec.Struct):
    """The tasks that were told."""

    message: str
    tasks: list[str]


@endpoint("POST", "/api/v2/jobs/{job}/signal", body=SignalRequest, returns=Signalled, errors=(403, 404, 409))
async def send_signal(call: Call) -> Signalled:
    """Have the programs of a job that registered a callback for it write a checkpoint."""
    job = find_job(call)
    require_owner(call, job)
    body: SignalRequest = call.body
    running = running_tasks(call, job, body.task)
    services = call.services
    told = []
    for task in running:
        place = services.settings.task_folder(job.id, job.attempt, task.role, task.idx, task.task_attempt)
        if await deliver(services.launcher, task.handle or "", str(place)):
            told.append(f"{task.role}/{task.idx}")
    if not told:
        what = f"task {body.task}" if body.task else "no task"
        raise ConflictError(
            f"{what} of job {job.path} {'does not listen' if body.task else 'listens'} for {body.name!r}.",
            hint=f"a program listens while its Runtime runs with a function under @app.on({body.name!r})",
        )
    return Signalled(f"{body.name} was asked for in {', '.join(told)}.", told)


ENDPOINTS = [send_signal]
