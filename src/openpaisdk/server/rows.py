"""What the store hands out: jobs, attempts, tasks and events as plain tuples."""

from __future__ import annotations

from typing import NamedTuple


class JobRow(NamedTuple):
    """One job as it is stored."""

    id: int
    user: str
    name: str
    debug_id: str
    uid: str
    state: str
    sub_state: str
    execution_type: str
    retries: int
    user_retries: int
    retry_at: float | None
    retry_delay: float | None
    submitted: int
    created: int | None
    launched: int | None
    completed: int | None
    exit_code: int | None
    vc: str
    gpus: int
    tasks: int
    roles: int
    priority: str
    tags: str
    role_names: str
    attempt: int | None
    version: int

    @property
    def path(self) -> str:
        """The job as people and URLs name it."""
        return f"{self.user}~{self.name}"

    @property
    def finished(self) -> bool:
        return self.sub_state == "Completed"


class AttemptRow(NamedTuple):
    """One attempt of a job."""

    job_id: int
    attempt: int
    uid: str
    sub_state: str
    created: int | None
    launched: int | None
    completed: int | None
    exit_code: int | None
    trigger: str | None
    outcome: str | None


class TaskRow(NamedTuple):
    """One task of a job attempt with one of its task attempts: its current one, unless said otherwise.

    A task that was never launched has no task attempt; the columns about it are None then.
    """

    role: str
    idx: int
    uid: str
    sub_state: str
    retries: int
    user_retries: int
    retry_at: float | None
    created: int | None
    launched: int | None
    completed: int | None
    exit_code: int | None
    task_attempt: int
    attempt_uid: str | None
    attempt_sub_state: str
    node: str | None
    ip: str | None
    ports: str
    gpus: str
    handle: str | None
    kill_code: int | None
    attempt_created: int | None
    attempt_launched: int | None
    attempt_completed: int | None
    attempt_exit_code: int | None
    outcome: str | None


class EventRow(NamedTuple):
    """One line of a job's event log."""

    id: int
    role: str | None
    idx: int | None
    pod_uid: str | None
    type: str
    reason: str
    message: str
    first: int
    last: int
    times: int
    component: str
