"""The history of a job: its attempts, and the attempts of each task."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import PlainTextResponse, Response

from openpaisdk.errors import NotFoundError
from openpaisdk.server import views
from openpaisdk.server.http import Answer, Call, endpoint
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.routes.finding import find_job, no_job
from openpaisdk.server.rows import TaskRow

_JOB = "/api/v2/jobs/{job}"


@endpoint("GET", _JOB + "/job-attempts/healthz", media="text/plain")
async def attempts_healthz(call: Call) -> Response:
    """Whether history is kept: always, whatever job is asked for."""
    return PlainTextResponse("ok")


@endpoint("GET", _JOB + "/job-attempts", returns=list[dict[str, Any]], errors=(404,))
async def list_job_attempts(call: Call) -> Any:
    """All attempts of a job: the newest, then the others from the first on."""
    try:
        job = find_job(call)
    except NotFoundError:
        return Answer(None, status=404)
    store: JobStore = call.services.jobs

    def encode(connection: Any) -> bytes:
        attempts = store.attempts(job.id, connection=connection)
        if not attempts:
            return msgspec.json.encode([views.job_attempt(job, None, [])])
        tasks: dict[int, list[TaskRow]] = {}
        for number, task in store.tasks_of_all_attempts(job.id, connection=connection):
            tasks.setdefault(number, []).append(task)
        shown = [views.job_attempt(job, one, tasks.get(one.attempt, [])) for one in attempts]
        return msgspec.json.encode([shown[-1], *shown[:-1]])

    body = await store.db.query(encode)
    return Response(body, media_type="application/json; charset=utf-8")


@endpoint("GET", _JOB + "/job-attempts/{attempt}", returns=dict[str, Any], errors=(404,))
async def get_job_attempt(call: Call) -> Any:
    """One attempt of a job."""
    job = find_job(call)
    store: JobStore = call.services.jobs
    if job.attempt is None:
        return views.job_attempt(job, None, [])
    number = _number(call.path["attempt"])
    row = None if number is None else store.attempt(job.id, number)
    if row is None:
        raise no_job(f"{job.path} with attempt {call.path['attempt']}")
    return views.job_attempt(job, row, store.tasks(job.id, row.attempt))


@endpoint(
    "GET",
    _JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts",
    returns=dict[str, Any],
    errors=(404,),
)
async def get_task(call: Call) -> Any:
    """One task with all its attempts, newest first."""
    job = find_job(call)
    attempt, index = _number(call.path["attempt"]), _number(call.path["index"])
    history: list[TaskRow] = []
    if attempt is not None and index is not None:
        history = call.services.jobs.task_history(job.id, attempt, call.path["role"], index)
    if not history:
        raise no_job(f"{job.path} with task {call.path['role']}/{call.path['index']}")
    return views.task_history(job, attempt or 0, history)


def _number(text: str) -> int | None:
    """A number as it stands in a path, small enough for the store."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


ENDPOINTS = [attempts_healthz, list_job_attempts, get_job_attempt, get_task]
