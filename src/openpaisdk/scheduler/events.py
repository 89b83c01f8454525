"""What the scheduler is told.

Every event may come twice or late: one about a job, an attempt or a task attempt that is over changes
nothing. For each task in a LaunchTasks action the server must in the end report one of TaskEnded, TaskLost
or LaunchFailed, also when the task was killed before it came up.
"""

from __future__ import annotations

import msgspec

from .model import JobInfo, Node, Quota, TaskRef, VirtualCluster


class JobSubmitted(msgspec.Struct, frozen=True):
    """A job that `Scheduler.admit` let pass and that the store holds."""

    job: JobInfo


class StopRequested(msgspec.Struct, frozen=True):
    """Somebody wants the job stopped (executionType STOP, already stored)."""

    job_id: str


class TaskPreparing(msgspec.Struct, frozen=True):
    """The launcher is at it but the task does not run yet: an image is pulled, the engine has it queued."""

    task: TaskRef


class TaskStarted(msgspec.Struct, frozen=True):
    """The task runs."""

    task: TaskRef
    at: float


class TaskEnded(msgspec.Struct, frozen=True):
    """The task ended; `code` is the classified exit code (contract B.10), `message` what to say beyond it."""

    task: TaskRef
    code: int
    at: float
    message: str = ""


class TaskLost(msgspec.Struct, frozen=True):
    """Nobody knows how the task ended: the machine restarted or is gone. It is retried for free."""

    task: TaskRef
    at: float
    message: str = "the machine restarted or was lost"


class LaunchFailed(msgspec.Struct, frozen=True):
    """The launcher could not start these tasks; none of them runs.

    `code`: -310 unknown, counted against the retries (default); -200 never to be tried again; -120 passing
    trouble.
    """

    tasks: tuple[TaskRef, ...]
    reason: str
    at: float
    code: int = -310


class Tick(msgspec.Struct, frozen=True):
    """Time has passed; due after each WakeAt."""


class NodesChanged(msgspec.Struct, frozen=True):
    """The nodes are these now. Tasks on a node that left stay until they are reported ended or lost."""

    nodes: tuple[Node, ...]


class LimitsChanged(msgspec.Struct, frozen=True):
    """Virtual clusters and quotas are these now; what runs goes on."""

    virtual_clusters: tuple[VirtualCluster, ...]
    quotas: dict[str, Quota] = {}


Event = (
    JobSubmitted
    | StopRequested
    | TaskPreparing
    | TaskStarted
    | TaskEnded
    | TaskLost
    | LaunchFailed
    | Tick
    | NodesChanged
    | LimitsChanged
)
