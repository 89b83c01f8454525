"""Jobs: submit, list, look at, stop, tag, wait for and delete them."""

from __future__ import annotations

import asyncio
import shutil
import time
from typing import Any, Literal

import msgspec
from starlette.responses import Response

from openpaisdk.errors import ConflictError, InvalidJobError, NotFoundError, UsageError
from openpaisdk.protocol import mask_secrets
from openpaisdk.server import listing, views
from openpaisdk.server.explaining import how_it_ended
from openpaisdk.server.http import Call, endpoint
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.listing import NO_CLASS, JobFilter, parse_order
from openpaisdk.server.routes.finding import find_job, no_job, require_owner
from openpaisdk.server.rows import JobRow
from openpaisdk.server.submission import accept, parse_job

_JOBS = "/api/v2/jobs"
_JOB = _JOBS + "/{job}"

LARGEST_LIMIT = 50_000
LARGEST_OFFSET = 2**53
SHORT_PAGE = 200  # longer ones are read on another thread
FEW_TASKS = 100  # jobs with more are encoded on another thread, and kept until they change
DETAILS_KEPT = 64
LONG_TEXT = 4096  # bytes of a job spec: longer ones are parsed on another thread
LONGEST_WAIT = 600.0


class Accepted(msgspec.Struct):
    """A change that was taken in and will be seen to."""

    status: int
    message: str


class Submitted(Accepted):
    """A job that was taken in."""

    user: str
    name: str


class ListQuery(msgspec.Struct):
    """Filters (comma lists), order and page of the job list."""

    username: str = ""
    vc: str = ""
    state: str = ""
    keyword: str = ""
    jobPriority: str = ""
    tagsContain: str = ""
    tagsNotContain: str = ""
    offset: int = 0
    limit: int = 5000
    order: str = ""
    withTotalCount: str = ""


class ExecutionType(msgspec.Struct, forbid_unknown_fields=True):
    """START or STOP; a job that was stopped cannot be started again."""

    value: Literal["START", "STOP"]


class Tag(msgspec.Struct, forbid_unknown_fields=True):
    """A word to find jobs by; it has no comma."""

    value: str


class EventsQuery(msgspec.Struct):
    """Only Normal or only Warning events."""

    type: str | None = None


class WaitQuery(msgspec.Struct):
    """Answer when the state is another one than `state`, or with `until=terminal` when the job is over."""

    state: str | None = None
    until: str | None = None
    timeout: float = 60.0


class Why(msgspec.Struct):
    """Why a job is where it is, in words."""

    job: str
    state: str
    text: str
    hint: str | None


@endpoint(
    "POST",
    _JOBS,
    body=str,
    status=202,
    rate="submit",
    returns=Submitted,
    errors=(403, 404, 409, 503),
    media="text/yaml",
    headers={
        "Idempotency-Key": "a repeated call with the same key returns the same job",
        "Prefer": "`refuse-unfit` refuses a job that asks for more than there is",
    },
)
async def submit_job(call: Call) -> Submitted:
    """Submit a job (YAML or JSON text).

    An Idempotency-Key makes a repeated call return the same job. With `Prefer: refuse-unfit` a job that asks
    for more than there is gets refused; without it such a job waits, as on OpenPAI.
    """
    text = call.body
    if text is None:
        raise InvalidJobError("The job has to be sent as text.", hint="send Content-Type: text/yaml")
    spec = await asyncio.to_thread(parse_job, text) if len(text) > LONG_TEXT else parse_job(text)
    headers = call.request.headers
    job = await accept(
        call.services,
        call.caller,
        spec,
        headers.get("idempotency-key") or None,
        refuse_unfit="refuse-unfit" in headers.get("prefer", ""),
    )
    return Submitted(202, f"Job {job.path} is accepted.", job.user, job.name)


def _comma_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _filter(call: Call) -> JobFilter:
    query: ListQuery = call.query
    users = _comma_list(query.username)
    if call.services.settings.own_jobs_only and not call.caller.admin:
        if users and call.caller.name not in users:
            return JobFilter(users=("",))
        users = (call.caller.name,)
    return JobFilter(
        users=users,
        vcs=_comma_list(query.vc),
        states=_comma_list(query.state),
        priorities=tuple(NO_CLASS if name == "default" else name for name in _comma_list(query.jobPriority)),
        keyword=query.keyword,
        tags=_comma_list(query.tagsContain),
        without_tags=_comma_list(query.tagsNotContain),
    )


@endpoint("GET", _JOBS, query=ListQuery, rate="list", returns=list[dict[str, Any]], errors=(400,))
async def list_jobs(call: Call) -> Any:
    """Everybody's jobs, newest first unless `order` says otherwise; `withTotalCount=true` wraps the page."""
    query: ListQuery = call.query
    if not 0 <= query.offset <= LARGEST_OFFSET or query.limit < 0:
        raise UsageError("offset and limit must be numbers from 0 on.")
    if query.limit > LARGEST_LIMIT:
        raise UsageError(
            f"limit {query.limit} is more than {LARGEST_LIMIT}.", hint="ask page by page with offset"
        )
    wanted = _filter(call)
    order = parse_order(query.order)
    store: JobStore = call.services.jobs
    counted = query.withTotalCount == "true"

    def look(connection: Any) -> Any:
        total = listing.count(connection, wanted) if counted else None
        rows = store.page(
            connection, wanted, order=order, offset=query.offset, limit=query.limit, matches=total
        )
        data = [views.list_row(row) for row in rows]
        return {"totalCount": total, "data": data} if counted else data

    if wanted.counted and query.limit <= SHORT_PAGE:
        return look(store.db.read)
    body = await store.db.query(lambda connection: msgspec.json.encode(look(connection)))
    return Response(body, media_type="application/json; charset=utf-8")


@endpoint("GET", _JOB, returns=dict[str, Any], errors=(404,))
async def get_job(call: Call) -> Any:
    """A job as it stands, with the tasks of its newest attempt."""
    return await show(call, find_job(call), None)


@endpoint("GET", _JOB + "/attempts/{attempt}", returns=dict[str, Any], errors=(404,))
async def get_job_at_attempt(call: Call) -> Any:
    """A job as it stood in one of its attempts; before the first one any number shows the waiting job."""
    job = find_job(call)
    number = call.path["attempt"]
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise no_job(f"{job.path} with attempt {number}")
    return await show(call, job, int(number))


async def show(call: Call, job: JobRow, attempt: int | None) -> Any:
    """The detail of a job; that of a large one is encoded once per change, whoever asks."""
    store: JobStore = call.services.jobs
    number = job.attempt if attempt is None or job.attempt is None else attempt
    row = None if number is None else store.attempt(job.id, number)
    if number is not None and row is None:
        raise no_job(f"{job.path} with attempt {number}")
    if job.tasks <= FEW_TASKS:
        return views.detail(job, row, [] if row is None else store.tasks(job.id, row.attempt))
    etag = f'W/"{job.uid[:8]}-{job.version}-{number}"'
    if etag in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": etag})
    body = await _encoded(call.services, job, row)
    return Response(body, media_type="application/json; charset=utf-8", headers={"etag": etag})


async def _encoded(services: Any, job: JobRow, row: Any) -> bytes:
    kept: dict[Any, tuple[int, asyncio.Future[bytes]]] = services.details
    key = (job.id, row.attempt if row else None)
    version, future = kept.get(key, (-1, None))
    if (
        future is None
        or version != job.version
        or future.cancelled()
        or (future.done() and future.exception())
    ):
        store: JobStore = services.jobs

        def encode(connection: Any) -> bytes:
            tasks = [] if row is None else store.tasks(job.id, row.attempt, connection=connection)
            return msgspec.json.encode(views.detail(job, row, tasks))

        future = asyncio.ensure_future(store.db.query(encode))
        kept.pop(key, None)
        kept[key] = (job.version, future)
        while len(kept) > DETAILS_KEPT:
            kept.pop(next(iter(kept)))
    return await asyncio.shield(future)


@endpoint("GET", _JOB + "/config", returns=dict[str, Any], errors=(404,), media="text/yaml")
async def get_job_config(call: Call) -> Response:
    """The job spec as JSON text (which is YAML), its secrets masked."""
    job = find_job(call)
    spec = call.services.jobs.spec(job.id)
    if spec is None:
        raise NotFoundError(f"Config of job {job.path} is not found.", code="NoJobConfigError")
    return Response(msgspec.json.encode(mask_secrets(spec)), media_type="text/yaml; charset=utf-8")


@endpoint(
    "PUT", _JOB + "/executionType", body=ExecutionType, status=202, returns=Accepted, errors=(403, 404, 503)
)
async def set_execution_type(call: Call) -> Accepted:
    """Stop a job; START is accepted and changes nothing, as in OpenPAI."""
    job = find_job(call)
    require_owner(call, job)
    if call.body.value == "STOP":
        await call.services.loop.stop(job)
    return Accepted(202, f"Execution type of job {job.path} is set to {call.body.value}.")


async def _tag(call: Call, *, present: bool) -> Accepted:
    job = find_job(call)
    require_owner(call, job)
    tag = call.body.value
    if not tag or "," in tag:
        raise UsageError(f"{tag!r} is not a tag: it must not be empty or have a comma.")
    changed = await call.services.loop.write_job(
        job.id, lambda connection: JobStore.set_tag(connection, job.id, tag, present=present)
    )
    if not present and not changed:
        raise NotFoundError(f"Job {job.path} has no tag {tag}.", code="NoTagError")
    return Accepted(200, f"Tag {tag} is {'added to' if present else 'removed from'} job {job.path}.")


@endpoint("PUT", _JOB + "/tag", body=Tag, returns=Accepted, errors=(403, 404, 503))
async def add_tag(call: Call) -> Accepted:
    """Tag a job; twice is fine."""
    return await _tag(call, present=True)


@endpoint("DELETE", _JOB + "/tag", body=Tag, returns=Accepted, errors=(403, 404, 503))
async def remove_tag(call: Call) -> Accepted:
    """Take a tag off a job."""
    return await _tag(call, present=False)


@endpoint("GET", _JOB + "/ssh", errors=(404,))
async def get_ssh(call: Call) -> None:
    """Always refused, as in OpenPAI: addresses and ports are in the detail of the job."""
    job = find_job(call)
    raise NotFoundError(
        f"SSH info of job {job.path} is not found.",
        code="NoJobSshInfoError",
        hint=f"opai job exec {job.name} opens a shell in a running task",
    )


@endpoint("GET", _JOB + "/events", query=EventsQuery, returns=dict[str, Any], errors=(400, 404))
async def list_events(call: Call) -> dict[str, Any]:
    """What happened to a job, newest first."""
    job = find_job(call)
    if call.query.type not in (None, "Normal", "Warning"):
        raise UsageError(f"type {call.query.type!r} is neither Normal nor Warning.")
    data = [views.event(job, row) for row in call.services.jobs.events(job.id, call.query.type)]
    return {"totalCount": len(data), "data": data}


@endpoint("GET", _JOB + "/wait", query=WaitQuery, returns=dict[str, Any], errors=(400, 404))
async def wait_for_job(call: Call) -> Any:
    """The detail of a job as soon as its state is another, at the latest after `timeout` seconds."""
    query: WaitQuery = call.query
    job = find_job(call)
    if not query.timeout >= 0:  # also what is not a number
        raise UsageError(f"timeout {query.timeout} is not a number of seconds.")
    deadline = time.monotonic() + min(query.timeout, LONGEST_WAIT)
    changed = asyncio.Event()
    unsubscribe = call.services.loop.changes.subscribe(job.id, changed.set)
    try:
        while True:
            changed.clear()
            job = find_job(call)
            moved = job.finished if query.until == "terminal" else job.state != query.state
            left = deadline - time.monotonic()
            if moved or job.finished or left <= 0 or call.services.closing.is_set():
                return await show(call, job, None)
            try:
                await asyncio.wait_for(changed.wait(), left)
            except asyncio.TimeoutError:
                continue
    finally:
        unsubscribe()


@endpoint("GET", _JOB + "/why", returns=Why, errors=(404,))
async def explain_job(call: Call) -> Why:
    """Why a job waits, or how it ended, in words."""
    job = find_job(call)
    if job.finished:
        return Why(job.path, job.state, *how_it_ended(call.services.jobs, job))
    found = call.services.loop.why(job)
    return Why(job.path, job.state, found.text, found.hint)


@endpoint("DELETE", _JOB, returns=Accepted, errors=(403, 404, 409, 503))
async def delete_job(call: Call) -> Accepted:
    """Delete a finished job with its logs, outputs and history; its name is free again."""
    job = find_job(call)
    require_owner(call, job)
    if not job.finished:
        raise ConflictError(f"Job {job.path} is not finished.", hint="stop it first, then delete it")
    services = call.services
    await services.launcher.forget(services.jobs.handles(job.id))
    for folder in (services.settings.tasks / str(job.id), services.settings.job_folder(job.user, job.name)):
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    await services.loop.write_job(job.id, lambda connection: JobStore.delete_job(connection, job.id))
    return Accepted(200, f"Job {job.path} is deleted.")


ENDPOINTS = [
    submit_job,
    list_jobs,
    get_job,
    get_job_at_attempt,
    get_job_config,
    set_execution_type,
    add_tag,
    remove_tag,
    get_ssh,
    list_events,
    wait_for_job,
    explain_job,
    delete_job,
]
