"""What the scheduler wants done, in this order.

All actions of one `handle` call are one step: store them in ONE transaction, then act (launch, kill, set a
timer). After a crash `Scheduler.restore` gets the stored rows back and says again what was still to be
done; launching the same TaskRef twice must start it once, killing what is gone is fine. Each class says
below what to store, in the words of `JobRecord` and `TaskRecord`; times are those of the `now` or `at`
given in, in seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .model import TaskRef, TaskStart


class StartAttempt(msgspec.Struct, frozen=True):
    """A new job attempt begins; a LaunchTasks with its first tasks follows.

    Store: a new attempt row; job.attempt, job.sub_state = AttemptCreationRequested, job.code = None,
    job.trigger = None, job.retry_at = None, job.started_at = None. Tasks of the attempt start out as
    AttemptCreationPending, task_attempt 0. Do: nothing.
    """

    job_id: str
    attempt: int
    at: float


class LaunchTasks(msgspec.Struct, frozen=True):
    """Launch these task attempts, all or none.

    Store (the intent) per task: task.task_attempt, uid, placement, sub_state = AttemptCreationRequested,
    kill_code = code = started_at = completed_at = retry_at = None. Do: launch; safe to repeat.
    """

    job_id: str
    attempt: int
    tasks: tuple[TaskStart, ...]
    at: float


class TaskMoved(msgspec.Struct, frozen=True):
    """A task attempt is in another state without having ended.

    Store: task.sub_state; with AttemptRunning also task.started_at = at. Do: nothing.
    """

    task: TaskRef
    sub_state: str
    at: float


class JobMoved(msgspec.Struct, frozen=True):
    """The job is in another state without its attempt having ended.

    Store: job.sub_state, job.code, job.trigger; with AttemptRunning also job.started_at = at (the attempt's
    launch time, and the job's when it is the first). AttemptDeletionRequested comes with the code the
    attempt will end with. AttemptCreationPending means: back in the queue for the next attempt;
    job.retry_at = None. Do: nothing.
    """

    job_id: str
    attempt: int
    sub_state: str
    at: float
    code: int | None = None
    trigger: TaskRef | None = None


class KillTasks(msgspec.Struct, frozen=True):
    """Kill these task attempts; whatever they exit with, they will be completed with `code`.

    Store: task.kill_code = code, task.sub_state = AttemptDeletionRequested. Do: kill (SIGTERM, after `grace`
    seconds SIGKILL); safe to repeat; report TaskEnded for each, also when it was not up yet.
    """

    job_id: str
    tasks: tuple[TaskRef, ...]
    code: int
    reason: str
    grace: float


class TaskCompleted(msgspec.Struct, frozen=True):
    """A task attempt is over; what it held is free.

    Store: task.code, task.completed_at = at, task.sub_state = Completed when `final`, else AttemptCompleted
    (a TaskRetryScheduled follows). A task that never started has no attempt row: then the task's own. Do:
    nothing.
    """

    task: TaskRef
    code: int
    at: float
    final: bool
    message: str = ""


class TaskRetryScheduled(msgspec.Struct, frozen=True):
    """A task of a job without gang waits for its next attempt (`task.task_attempt`), due at `at`.

    Store: task.retries, task.counted_retries, task.retry_at = at; sub_state stays AttemptCompleted while at
    > now, then a TaskMoved to AttemptCreationPending follows. Do: nothing.
    """

    task: TaskRef
    at: float
    free: bool
    retries: int
    counted_retries: int


class AttemptCompleted(msgspec.Struct, frozen=True):
    """All tasks of the job attempt are over; RetryScheduled or JobCompleted follows.

    Store: the attempt row's code, trigger, completed time; job.sub_state = AttemptCompleted, job.code,
    job.trigger. Do: nothing.
    """

    job_id: str
    attempt: int
    code: int
    at: float
    trigger: TaskRef | None = None
    message: str = ""


class RetryScheduled(msgspec.Struct, frozen=True):
    """The job will get this attempt, at `at` at the earliest; `free`: not counted against jobRetryCount.

    Store: job.retries, job.counted_retries, job.retry_at = at (`retryDelayTime` = at - time of this step). A
    JobMoved to AttemptCreationPending follows when it is due. Do: nothing.
    """

    job_id: str
    attempt: int
    at: float
    free: bool
    retries: int
    counted_retries: int


class JobCompleted(msgspec.Struct, frozen=True):
    """The job is over for good.

    Store: job.sub_state = Completed, job.code, completed time; `attempt` is None where none was ever started.
    Do: tell who waits. The scheduler has forgotten the job.
    """

    job_id: str
    attempt: int | None
    code: int
    at: float
    trigger: TaskRef | None = None


class Record(msgspec.Struct, frozen=True):
    """A line of the job's event log. Store: append. Do: nothing."""

    job_id: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    at: float
    task: TaskRef | None = None


class WakeAt(msgspec.Struct, frozen=True):
    """Send a Tick at this time; replaces any earlier WakeAt. Store: nothing."""

    at: float


Action = (
    StartAttempt
    | LaunchTasks
    | TaskMoved
    | JobMoved
    | KillTasks
    | TaskCompleted
    | TaskRetryScheduled
    | AttemptCompleted
    | RetryScheduled
    | JobCompleted
    | Record
    | WakeAt
)
