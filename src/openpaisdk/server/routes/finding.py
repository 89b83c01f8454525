"""The job and the tasks that a request is about, if the caller may see or change them."""

from __future__ import annotations

from typing import Any

from openpaisdk.errors import AccessError, ConflictError, NotFoundError, UsageError
from openpaisdk.protocol import split_job
from openpaisdk.server.auth import Caller
from openpaisdk.server.http import Call
from openpaisdk.server.rows import JobRow, TaskRow


def find_job(call: Call) -> JobRow:
    """The job of the path, if there is one that the caller may see."""
    text = call.path["job"]
    try:
        user, name = split_job(text, call.caller.name)
    except UsageError:
        user, name = "", text
    job = call.services.jobs.find(user, name)
    if job is None or not may_see(call.services, call.caller, job):
        raise no_job(text)
    found: JobRow = job
    return found


def no_job(text: str) -> NotFoundError:
    return NotFoundError(f"Job {text} is not found.", code="NoJobError")


def may_see(services: Any, caller: Caller, job: JobRow) -> bool:
    return not services.settings.own_jobs_only or caller.admin or job.user == caller.name


def require_owner(call: Call, job: JobRow) -> None:
    """Only its owner and admins may change a job or look inside."""
    if not call.caller.admin and job.user != call.caller.name:
        raise AccessError(f"User {call.caller.name} is not allowed to change job {job.path}.")


def running_tasks(call: Call, job: JobRow, wanted: str | None) -> list[TaskRow]:
    """The tasks of a job that run now, or the one that is `wanted` (role/index); never none."""
    tasks: list[TaskRow] = [] if job.attempt is None else call.services.jobs.tasks(job.id, job.attempt)
    names = [f"{task.role}/{task.idx}" for task in tasks]
    if wanted is not None and wanted not in names:
        known = ", ".join(names[:5]) or "none yet"
        raise NotFoundError(f"Job {job.path} has no task {wanted}.", hint=f"its tasks: {known}")
    found = [
        task
        for task, name in zip(tasks, names)
        if wanted in (None, name) and task.handle and task.attempt_launched and task.attempt_completed is None
    ]
    if not found:
        of_job = f"of job {job.path}"
        what = f"task {wanted} {of_job} does not run" if wanted else f"no task {of_job} runs"
        raise ConflictError(f"{what}.", hint="a task can be reached between its start and its end")
    return found
