"""Logs of tasks: where they are, their bytes, and following them as a stream."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse

from openpaisdk.errors import AccessError, NotFoundError, UsageError
from openpaisdk.server import views
from openpaisdk.server.follow import Choice, JobFollower, stream_log
from openpaisdk.server.http import Call, endpoint
from openpaisdk.server.logfiles import Part, Tail, pieces, size_at
from openpaisdk.server.routes.finding import find_job, no_job
from openpaisdk.server.rows import JobRow, TaskRow

_JOB = "/api/v2/jobs/{job}"
_LOGS = _JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts/{task_attempt}/logs"

LINK_SECONDS = 120
TAIL_BYTES = 16384
CHUNK = 256 * 1024
LARGEST_OFFSET = 2**53
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})\Z")
PLAIN = "text/plain; charset=utf-8"
_EVENTS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class LogLocation(msgspec.Struct):
    """A log and where its bytes are, relative to the origin of the server; good for two minutes."""

    name: str
    uri: str


class LogLocations(msgspec.Struct):
    """The logs of a task attempt."""

    locations: list[LogLocation]


class LocationsQuery(msgspec.Struct, rename={"tail_mode": "tail-mode"}):
    """`tail-mode=true`, or `tailMode=true` as some clients write it: addresses of the ends only."""

    tail_mode: str = ""
    tailMode: str = ""


class LogQuery(msgspec.Struct, rename={"tail_mode": "tail-mode"}):
    """`tail-mode` gives the last 16 KiB, `offset` all from a byte on, `follow` a stream of events."""

    tail_mode: str = ""
    tailMode: str = ""
    offset: int = 0
    follow: str = ""
    token: str = ""


class FollowQuery(msgspec.Struct):
    """`streams` and `tasks` (role/index) as comma lists; `positions` as JSON."""

    streams: str = ""
    tasks: str = ""
    tail: int | None = None
    positions: str = ""


class FollowBody(msgspec.Struct):
    """The same as JSON, for positions that do not fit into an address."""

    streams: list[str] | None = None
    tasks: list[str] | None = None
    tail: int | None = None
    positions: dict[str, int] = {}


def _task(call: Call, job: JobRow) -> TaskRow:
    numbers = [call.path[name] for name in ("attempt", "index", "task_attempt")]
    task = None
    if all(text.isascii() and text.isdigit() and len(text) < 16 for text in numbers):
        attempt, index, task_attempt = map(int, numbers)
        task = call.services.jobs.task_attempt(job.id, attempt, call.path["role"], index, task_attempt)
    if task is None or task.handle is None:
        raise no_log(job.path, f"{call.path['role']}/{call.path['index']}")
    found: TaskRow = task
    return found


def no_log(job: str, what: str) -> NotFoundError:
    return NotFoundError(f"Log of {what} in job {job} is not found.", code="NoTaskLogError")


def _files(call: Call, task: TaskRow) -> dict[str, Path]:
    """The logs that are there; `all` is made of the first two."""
    listed = call.services.loop.tasks.log_files(task.handle)
    return {name: path for name, path in listed.items() if path is not None and path.is_file()}


def _signed(call: Call, path: str, expires: int) -> str:
    text = f"{path.lower()} {expires}".encode()
    return f"{expires}.{hmac.new(call.services.link_key, text, hashlib.sha256).hexdigest()[:40]}"


def _log_path(job: JobRow, attempt: int, task: TaskRow, name: str) -> str:
    return f"{views.log_path(job.path, attempt, task)}/{quote(name)}"


@endpoint("GET", _LOGS, query=LocationsQuery, returns=LogLocations, errors=(404,))
async def list_logs(call: Call) -> LogLocations:
    """Where the logs of a task attempt are."""
    job = find_job(call)
    task = _task(call, job)
    files = _files(call, task)
    if not files:
        raise no_log(job.path, f"{task.role}/{task.idx}")
    tail = "true" in (call.query.tail_mode, call.query.tailMode)
    expires = int(time.time()) + LINK_SECONDS
    locations = []
    for name in ("stdout", "stderr", "all", *(name for name in files if name not in ("stdout", "stderr"))):
        path = _log_path(job, int(call.path["attempt"]), task, name)
        uri = f"{path}?token={_signed(call, path, expires)}" + ("&tail-mode=true" if tail else "")
        locations.append(LogLocation(name, uri))
    return LogLocations(locations)


def _authorise(call: Call) -> JobRow:
    """Who has a signed address may read that log; anybody else has to say who they are."""
    if not call.query.token:
        caller = call.services.accounts.authenticate(call.request.headers.get("authorization"))
        call.caller = caller
        return find_job(call)
    expires = call.query.token.partition(".")[0]
    until = int(expires) if expires.isascii() and expires.isdigit() and len(expires) < 16 else 0
    wanted = _signed(call, f"{_LOGS}/{{name}}".format(**call.path), until)
    if not hmac.compare_digest(wanted.encode(), call.query.token.encode()) or until < time.time():
        raise AccessError("This address of a log is not valid any more.", hint="list the logs again")
    user, _, name = call.path["job"].partition("~")
    job = call.services.jobs.find(user, name)
    if job is None:
        raise no_job(call.path["job"])
    found: JobRow = job
    return found


@endpoint(
    "GET",
    _LOGS + "/{name}",
    guard="none",
    query=LogQuery,
    errors=(401, 403, 404, 416),
    media="text/plain",
    headers={
        "Range": "`bytes=0-99` and the like",
        "Last-Event-ID": "with `follow`, the offset to go on from",
    },
)
async def read_log(call: Call) -> Response:
    """The bytes of a log: whole, a Range, the end, from an offset on, or followed as server-sent events."""
    job = _authorise(call)
    task = _task(call, job)
    files = _files(call, task)
    name = call.path["name"]
    if name == "all":
        return _read_all(files, tail=_wants_tail(call))
    path = files.get(name)
    if path is None:
        raise no_log(job.path, f"{task.role}/{task.idx} {name}")
    if call.query.follow == "true":
        return _follow_one(call, job, task, path)
    return _send_file(call, job, path)


def _wants_tail(call: Call) -> bool:
    return "true" in (call.query.tail_mode, call.query.tailMode)


def _read_all(files: dict[str, Path], *, tail: bool) -> Response:
    """Both streams one after the other: they are kept apart, so how they were interleaved is not known."""
    parts: list[Part] = []
    room = TAIL_BYTES if tail else sys.maxsize
    for name in ("stderr", "stdout"):
        size = size_at(files[name]) if name in files else None
        if size is not None:
            parts.insert(0, Part(files[name], max(0, size - room), size))
            room -= min(room, size)
    return _send(parts, 206 if tail else 200, {})


def _send_file(call: Call, job: JobRow, path: Path) -> Response:
    size = size_at(path)
    if size is None:
        raise no_log(job.path, path.name)
    start, end, status = _span(call, size)
    headers = {"accept-ranges": "bytes"}
    if status == 206:
        headers["content-range"] = f"bytes {start}-{end - 1}/{size}" if end > start else f"bytes */{size}"
    if status == 416:
        return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
    return _send([Part(path, start, end)], status, headers)


def _send(parts: list[Part], status: int, headers: dict[str, str]) -> Response:
    size = sum(part.end - part.start for part in parts)
    if size <= CHUNK:
        data = b"".join(piece for part in parts for piece in pieces(part, CHUNK))
        return Response(data, status, headers=headers, media_type=PLAIN)
    headers = {**headers, "content-length": str(size)}
    return StreamingResponse(_chunks(parts), status, headers=headers, media_type=PLAIN)


def _span(call: Call, size: int) -> tuple[int, int, int]:
    """(start, end, status) of what was asked for."""
    if _wants_tail(call):
        return max(0, size - TAIL_BYTES), size, 206
    if call.query.offset:
        if not 0 <= call.query.offset <= LARGEST_OFFSET:
            raise UsageError(f"offset {call.query.offset} is not a place in a file.")
        return min(call.query.offset, size), size, 200
    found = _RANGE.match(call.request.headers.get("range", ""))
    if found is None or found.groups() == ("", ""):
        return 0, size, 200
    first, last = found.groups()
    if not first:
        return max(0, size - int(last)), size, 206 if size and int(last) else 416
    if int(first) >= size or (last and int(last) < int(first)):
        return 0, 0, 416
    return int(first), min(size, int(last) + 1) if last else size, 206


async def _chunks(parts: list[Part]) -> AsyncIterator[bytes]:
    """A piece at a time: logs have any size, and this memory is everybody's."""
    for part in parts:
        reading = pieces(part, CHUNK)
        try:
            while data := await asyncio.to_thread(next, reading, b""):
                yield data
        finally:
            reading.close()


def _follow_one(call: Call, job: JobRow, task: TaskRow, path: Path) -> Response:
    last = call.request.headers.get("last-event-id", "")
    offset = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else call.query.offset
    if not 0 <= offset <= LARGEST_OFFSET:
        raise UsageError(f"offset {offset} is not a place in a file.")
    tail = Tail(path, offset)
    attempt = int(call.path["attempt"])

    def find() -> TaskRow | None:
        found: TaskRow | None = call.services.jobs.task_attempt(
            job.id, attempt, task.role, task.idx, task.task_attempt
        )
        return found

    return StreamingResponse(
        stream_log(call.services, job, find, tail), media_type="text/event-stream", headers=_EVENTS
    )


def _follow(call: Call, choice: Choice) -> Response:
    job = find_job(call)
    unknown = set(choice.streams) - {"stdout", "stderr"}
    if unknown:
        raise UsageError(f"streams are stdout and stderr, not {', '.join(sorted(unknown))}.")
    follower = JobFollower(call.services, job, choice)
    return StreamingResponse(follower.stream(), media_type="text/event-stream", headers=_EVENTS)


def _choice(
    streams: list[str] | None, tasks: list[str] | None, tail: int | None, positions: dict[str, int]
) -> Choice:
    numbers = [*positions.values(), tail or 0]
    if not all(0 <= number <= LARGEST_OFFSET for number in numbers):
        raise UsageError("tail and positions must be numbers from 0 on.")
    return Choice(tuple(streams or ("stdout", "stderr")), frozenset(tasks or ()), tail, positions)


@endpoint("GET", _JOB + "/follow", query=FollowQuery, errors=(400, 404), media="text/event-stream")
async def follow_job(call: Call) -> Response:
    """All logs and changes of state of a job as server-sent events, until it is over."""
    query: FollowQuery = call.query
    try:
        positions = msgspec.json.decode(query.positions or b"{}", type=dict[str, int])
    except msgspec.DecodeError as error:
        raise UsageError(f"positions are not valid: {error}.") from error
    choice = _choice(_listed(query.streams), _listed(query.tasks), query.tail, positions)
    return _follow(call, choice)


@endpoint("POST", _JOB + "/follow", body=FollowBody, errors=(400, 404), media="text/event-stream")
async def follow_job_from(call: Call) -> Response:
    """The same with the positions in the body."""
    body: FollowBody = call.body
    return _follow(call, _choice(body.streams, body.tasks, body.tail, body.positions))


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


ENDPOINTS = [list_logs, read_log, follow_job, follow_job_from]
