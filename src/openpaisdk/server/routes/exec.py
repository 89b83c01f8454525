"""Commands in running tasks: start one, read its output as a stream, write to it, resize its terminal."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import Response, StreamingResponse

from openpaisdk.errors import UsageError
from openpaisdk.server.exec import Session
from openpaisdk.server.http import Call, endpoint
from openpaisdk.server.routes.finding import find_job, require_owner, running_tasks

_EXEC = "/api/v2/jobs/{job}/exec"
LARGEST_INPUT = 4 << 20


class ExecRequest(msgspec.Struct):
    """A command (a shell where it is empty) in `task` (role/index); by default the first that runs."""

    command: list[str] = []
    task: str | None = None
    tty: bool = False
    rows: int = 24
    cols: int = 80


class ExecStarted(msgspec.Struct):
    """The session to read from and write to."""

    id: str
    task: str


class InputQuery(msgspec.Struct):
    """`eof=1` closes the input of the command."""

    eof: str = ""


class Size(msgspec.Struct):
    """The size of a terminal."""

    rows: int
    cols: int


@endpoint("POST", _EXEC, body=ExecRequest, returns=ExecStarted, errors=(403, 404, 409))
async def start_exec(call: Call) -> ExecStarted:
    """Run a command in the folder, variables and container of a running task."""
    job = find_job(call)
    require_owner(call, job)
    body: ExecRequest = call.body
    if any("\0" in word for word in body.command):
        raise UsageError("a command cannot have null characters.")
    task = running_tasks(call, job, body.task)[0]
    size = (_clamp(body.rows), _clamp(body.cols)) if body.tty else None
    session = await call.services.exec.open(call.caller.name, job.id, task.handle, body.command, size=size)
    return ExecStarted(session.id, f"{task.role}/{task.idx}")


def _clamp(number: int) -> int:
    return min(max(number, 1), 10_000)


def _session(call: Call) -> Session:
    job = find_job(call)
    require_owner(call, job)
    found: Session = call.services.exec.get(call.path["session"], call.caller.name, job.id)
    return found


@endpoint("GET", _EXEC + "/{session}/output", errors=(403, 404), media="text/event-stream")
async def exec_output(call: Call) -> Response:
    """What the command writes (events out and err, base64), then its exit code; leaving ends the command."""
    session = _session(call)

    async def stream() -> AsyncIterator[bytes]:
        yield b": ready\n\n"
        async for name, data in session.frames():
            yield b"event: %s\ndata: %s\n\n" % (name.encode(), b2a_base64(data, newline=False))

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})


@endpoint(
    "POST", _EXEC + "/{session}/input", body=bytes, query=InputQuery, limit=LARGEST_INPUT, errors=(403, 404)
)
async def exec_input(call: Call) -> dict[str, int]:
    """Bytes for the command."""
    session = _session(call)
    await session.feed(call.body, eof=call.query.eof not in ("", "0", "false"))
    return {"bytes": len(call.body)}


@endpoint("POST", _EXEC + "/{session}/resize", body=Size, errors=(403, 404, 409))
async def exec_resize(call: Call) -> Size:
    """The terminal has another size."""
    size: Size = call.body
    _session(call).resize(_clamp(size.rows), _clamp(size.cols))
    return size


ENDPOINTS = [start_exec, exec_output, exec_input, exec_resize]
