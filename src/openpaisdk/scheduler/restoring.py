"""Builds the scheduler's memory again from what the server stored, and says what was left half done."""

from __future__ import annotations

from collections.abc import Iterable

from .actions import LaunchTasks
from .lifecycle import COMING_UP, UNDER_WAY, Lifecycle
from .model import JobRecord, Placement, TaskRecord, TaskStart
from .state import Job, Task
from .transitions import ATTEMPT_COMPLETED, COMPLETED, CREATION_PENDING, DELETION_REQUESTED


def rebuild(records: Iterable[JobRecord], life: Lifecycle, *, hands_over: bool) -> None:
    """Take over all jobs; first what they hold, then what they want."""
    taken = [(_taken_over(record, life), record) for record in records if record.sub_state != COMPLETED]
    for job, record in taken:
        for stored in record.tasks if job.tasks else ():
            _take_over_task(job.tasks[(stored.role, stored.index)], stored, life, hands_over=hands_over)
    for job, record in sorted(taken, key=lambda entry: entry[0].info.number):
        _go_on(job, record, life)


def _taken_over(record: JobRecord, life: Lifecycle) -> Job:
    life.jobs[record.job.id] = job = Job(record.job)
    job.sub_state = record.sub_state
    job.retries, job.counted = record.retries, record.counted_retries
    under_way = record.sub_state in UNDER_WAY or record.sub_state == DELETION_REQUESTED
    # Attempts are numbered by the retries before them; between two attempts the next one is meant.
    job.attempt = record.attempt if under_way else record.retries
    if record.sub_state != CREATION_PENDING:
        job.code, job.trigger, job.started_at = record.code, record.trigger, record.started_at
    if under_way:
        job.fresh_tasks()
    return job


def _take_over_task(task: Task, stored: TaskRecord, life: Lifecycle, *, hands_over: bool) -> None:
    task.sub_state = stored.sub_state
    task.retries, task.counted = stored.retries, stored.counted_retries
    task.task_attempt = stored.task_attempt
    if stored.sub_state == COMPLETED:
        task.code = stored.code
        task.job.open -= 1
        task.job.outcomes[task.role_index][stored.code != 0] += 1
    elif stored.sub_state in (CREATION_PENDING, ATTEMPT_COMPLETED):
        task.task_attempt = stored.retries
    else:
        task.uid, task.started_at, task.kill_code = stored.uid, stored.started_at, stored.kill_code
        task.placement = stored.placement or Placement("")
        if not hands_over:
            life.nodes.hold(task.placement, task.needs)
        life.hold(task)
        if task.kill_code is not None:
            life.dispatcher.dying.add(task)


def _go_on(job: Job, record: JobRecord, life: Lifecycle) -> None:
    if record.stop_requested and job.sub_state != DELETION_REQUESTED:
        job.retry_at = record.retry_at if job.sub_state == ATTEMPT_COMPLETED else None
        life.stop(job)
    elif job.sub_state == CREATION_PENDING:
        life.enqueue(job)
    elif job.sub_state == ATTEMPT_COMPLETED:
        job.retry_at = record.retry_at if record.retry_at is not None else life.now
        life.delay(job.retry_at, job)
    else:
        job.stop_requested = record.stop_requested
        _go_on_with_tasks(job, record, life)


def _go_on_with_tasks(job: Job, record: JobRecord, life: Lifecycle) -> None:
    coming_up = [t for t in job.tasks.values() if t.live and t.kill_code is None and t.sub_state in COMING_UP]
    for together in [coming_up] if job.info.gang else [[task] for task in coming_up]:
        if together:
            starts = tuple(
                TaskStart(task.ref, task.uid, task.placement or Placement("")) for task in together
            )
            life.out.append(LaunchTasks(job.info.id, job.attempt, starts, life.now))
    dying: dict[int, list[Task]] = {}
    for task in job.tasks.values():
        if task.live and task.kill_code is not None:
            dying.setdefault(task.kill_code, []).append(task)
    for code, tasks in dying.items():
        life.kill(tasks, code)
    if job.sub_state == DELETION_REQUESTED:
        if job.live == 0:
            life.finish_attempt(job, life.now)
        return
    due = {(stored.role, stored.index): stored.retry_at for stored in record.tasks}
    for task in job.waiting_tasks():
        if task.sub_state == ATTEMPT_COMPLETED:
            life.delay(due.get((task.role.name, task.index)) or life.now, task)
        else:
            life.ask(job, task)
