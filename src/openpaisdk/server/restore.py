"""What a new server reads back: unfinished jobs as the scheduler knows them, handles as the launcher does."""

from __future__ import annotations

import json
from typing import NamedTuple

from openpaisdk.scheduler import JobInfo, JobRecord, Placement, TaskRecord, TaskRef, job_info
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.launching import code_manifest
from openpaisdk.server.rows import JobRow, TaskRow

# Tasks in these states may have a process. Those only coming up are launched again, which starts none twice.
ALIVE = frozenset({"AttemptRunning", "AttemptDeletionRequested"})


class Restored(NamedTuple):
    """One unfinished job; `handles` are those of its tasks that may still run."""

    row: JobRow
    info: JobInfo
    record: JobRecord
    handles: dict[TaskRef, str]
    manifest: str | None = None


def unfinished_jobs(store: JobStore) -> list[Restored]:
    """Every job that is not over, in the order of submission."""
    found = []
    for row in store.unfinished():
        spec = store.spec(row.id)
        if spec is None:
            continue
        info = job_info(
            spec,
            id=str(row.id),
            user=row.user,
            number=row.id,
            submitted_at=row.submitted / 1000,
            name=row.path,
        )
        found.append(_restored(store, row, info)._replace(manifest=code_manifest(spec)))
    return found


def _restored(store: JobStore, row: JobRow, info: JobInfo) -> Restored:
    attempt = None if row.attempt is None else store.attempt(row.id, row.attempt)
    tasks = [] if attempt is None else store.tasks(row.id, attempt.attempt)
    # A job back in the queue has forgotten its last attempt: the next one starts from nothing.
    queued = row.sub_state == "AttemptCreationPending"
    trigger = None
    if attempt is not None and attempt.trigger and not queued:
        role, index, task_attempt = attempt.trigger.split("/")
        trigger = TaskRef(info.id, attempt.attempt, role, int(index), int(task_attempt))
    number = 0 if attempt is None else attempt.attempt
    record = JobRecord(
        job=info,
        sub_state=row.sub_state,
        attempt=number,
        code=row.exit_code,
        stop_requested=row.execution_type == "STOP",
        trigger=trigger,
        retries=row.retries,
        counted_retries=row.user_retries,
        retry_at=row.retry_at if row.sub_state == "AttemptCompleted" else None,
        started_at=_seconds(attempt.launched) if attempt and not queued else None,
        tasks=() if queued else tuple(_task_record(task) for task in tasks),
    )
    handles = {
        TaskRef(info.id, number, task.role, task.idx, task.task_attempt): task.handle
        for task in tasks
        if task.handle and task.sub_state in ALIVE
    }
    return Restored(row, info, record, handles)


def _task_record(task: TaskRow) -> TaskRecord:
    placement = None
    if task.attempt_uid:
        ports = {
            label: tuple(int(n) for n in text.split(",") if n)
            for label, text in json.loads(task.ports).items()
        }
        gpus = tuple(int(number) for number in task.gpus.split(",") if number)
        placement = Placement(task.node or "", gpus, ports)
    return TaskRecord(
        role=task.role,
        index=task.idx,
        task_attempt=task.task_attempt,
        sub_state=task.sub_state,
        code=task.exit_code,
        completed_at=_seconds(task.completed),
        started_at=_seconds(task.attempt_launched),
        kill_code=task.kill_code,
        retries=task.retries,
        counted_retries=task.user_retries,
        retry_at=task.retry_at,
        uid=task.attempt_uid or "",
        placement=placement,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
