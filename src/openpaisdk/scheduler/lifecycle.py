"""The life of an attempt: begun, run, decided, ended, and then another one or none (contract F.1 - F.3)."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from random import Random
from typing import Literal

from .actions import (
    Action,
    AttemptCompleted,
    JobCompleted,
    JobMoved,
    KillTasks,
    LaunchTasks,
    Record,
    RetryScheduled,
    StartAttempt,
    TaskCompleted,
    TaskMoved,
    TaskRetryScheduled,
)
from .dispatch import Dispatcher, Victim
from .model import Placement, TaskRef, TaskStart
from .placement import Layout, Nodes, algorithm_ports
from .policy import (
    ATTEMPT_OVER,
    LONGEST_DELAY,
    PREEMPTED,
    STOPPED_BY_USER,
    Retry,
    count_quick_ends,
    decide_retry,
    triggers,
)
from .shares import Shares
from .state import Ask, Job, Task, uid_of
from .transitions import (
    ATTEMPT_COMPLETED,
    COMPLETED,
    CREATION_PENDING,
    CREATION_REQUESTED,
    DELETION_REQUESTED,
    PREPARING,
    RUNNING,
)
from .wording import duration, placed, plural

UNDER_WAY = frozenset({CREATION_REQUESTED, PREPARING, RUNNING})
COMING_UP = frozenset({CREATION_REQUESTED, PREPARING})


class Lifecycle:
    """Moves jobs and tasks along and says so in `out`, which whoever called takes away."""

    def __init__(
        self,
        nodes: Nodes,
        shares: Shares,
        *,
        random: Random,
        grace: float,
        hands_over: bool,
        discreet: bool,
    ) -> None:
        self.jobs: dict[str, Job] = {}
        self.out: list[Action] = []
        self.nodes = nodes
        self.shares = shares
        self.dispatcher = Dispatcher(nodes, shares, start=self.start, evict=self.evict)
        self.now = 0.0
        self._random = random
        self._grace = grace
        self._hands_over = hands_over
        self._discreet = discreet
        self._delayed: list[tuple[float, int, Job | Task]] = []
        self._delays = 0

    def name(self, other: Job, reader: Job) -> str:
        """How a job is called towards the owner of another."""
        if self._discreet and other.info.user != reader.info.user:
            return "a job of another user"
        return other.info.name

    def enqueue(self, job: Job) -> None:
        """The job waits for its next attempt, whole or task by task."""
        if job.info.gang:
            self.ask(job, None)
        else:
            job.fresh_tasks()
            for task in list(job.tasks.values()):
                self.ask(job, task)

    def ask(self, job: Job, task: Task | None) -> None:
        """Put the gang, or one task, into the queue; where the engine has its own, start it."""
        ask = Ask(job, task)
        job.asks[_spot(task)] = ask
        if self._hands_over:
            self.start(ask, [(role, "", count) for role, _, count in ask.parts])
        else:
            self.dispatcher.enqueue(ask, self.now)

    def start(self, ask: Ask, layout: Layout) -> bool:
        """Begin what was asked for on these nodes; False, with nothing changed, where no port is left."""
        job = ask.job
        if ask.task is None:
            job.fresh_tasks()
        starting = self._take(ask, layout)
        if starting is None:
            if ask.task is None:
                job.tasks = {}
            return False
        job.asks.pop(_spot(ask.task), None)
        job.gave_way_to = None
        if job.sub_state == CREATION_PENDING:
            job.move(CREATION_REQUESTED, self.now)
            self.out.append(StartAttempt(job.info.id, job.attempt, self.now))
        for task in starting:
            task.move(CREATION_REQUESTED, self.now)
        self.out.append(
            LaunchTasks(job.info.id, job.attempt, tuple(_started(task) for task in starting), self.now)
        )
        if not self._hands_over:
            self._note(job, "Scheduled", placed(starting))
        return True

    def _take(self, ask: Ask, layout: Layout) -> list[Task] | None:
        taken: list[Task] = []
        given: dict[int, int] = {}
        for role_index, node, count in layout:
            role = ask.job.info.roles[role_index]
            for _ in range(count):
                index = given.get(role_index, 0)
                given[role_index] = index + 1
                task = ask.task or ask.job.tasks[(role.name, index)]
                task.uid = uid_of(task.ref)
                if self._hands_over:
                    task.placement = Placement("", (), algorithm_ports(role.request, task.uid))
                else:
                    task.placement = self.nodes.take(node, task.needs, role.request, task.uid)
                    if task.placement is None:
                        for other in taken:
                            self._release(other)
                        return None
                self.hold(task)
                taken.append(task)
        return taken

    def hold(self, task: Task) -> None:
        """The task has its resources."""
        self.shares.hold(task)
        task.live = True

    def _release(self, task: Task) -> None:
        if task.placement is not None and not self._hands_over:
            self.nodes.release(task.placement, task.needs)
        self.shares.release(task)
        task.live = False
        self.dispatcher.dying.discard(task)

    def prepare(self, task: Task) -> None:
        """The launcher is at it."""
        if task.sub_state == CREATION_REQUESTED:
            task.move(PREPARING, self.now)
            self.out.append(TaskMoved(task.ref, PREPARING, self.now))
        if task.job.sub_state == CREATION_REQUESTED:
            self._move_job(task.job, PREPARING, self.now)

    def run(self, task: Task, at: float) -> None:
        """The task runs; so does the job, from its first task on."""
        if task.sub_state not in COMING_UP:
            return
        task.move(RUNNING, at)
        task.started_at = at
        self.out.append(TaskMoved(task.ref, RUNNING, at))
        if task.job.sub_state in COMING_UP:
            task.job.started_at = at
            self._move_job(task.job, RUNNING, at)

    def end(self, task: Task, code: int, at: float, message: str) -> None:
        """A task attempt is over: retry it, or let it decide its job attempt."""
        job = task.job
        code = code if task.kill_code is None else task.kill_code
        self._release(task)
        self.dispatcher.changed()
        task.move(ATTEMPT_COMPLETED, at)
        task.code = code
        retry = self._task_retry(task, code, at)
        self.out.append(TaskCompleted(task.ref, code, at, not retry.again, message))
        if retry.again:
            self._retry_task(task, retry)
        else:
            task.move(COMPLETED, at)
            job.open -= 1
            outcome = job.outcomes[task.role_index]
            outcome[code != 0] += 1
            if job.sub_state in UNDER_WAY:
                if triggers(task.role, code, succeeded=outcome[0], failed=outcome[1]):
                    self.decide(job, code, at, trigger=task.ref, message=message)
                elif job.open == 0:
                    self.decide(job, 0, at)
        if job.sub_state == DELETION_REQUESTED and job.live == 0:
            self.finish_attempt(job, at, message)

    def _task_retry(self, task: Task, code: int, at: float) -> Retry:
        if task.job.info.gang or task.job.sub_state not in UNDER_WAY:
            return Retry(False)
        task.quick_ends = count_quick_ends(task.quick_ends, code, task.started_at, at)
        return decide_retry(
            code,
            fancy=True,
            maximum=task.role.task_retry_count,
            counted=task.counted,
            random=self._random,
            quick_ends=task.quick_ends,
        )

    def _retry_task(self, task: Task, retry: Retry) -> None:
        task.retries += 1
        task.counted += not retry.free
        task.task_attempt += 1
        task.kill_code = task.placement = task.started_at = None
        due = self.now + retry.delay
        self.out.append(TaskRetryScheduled(task.ref, due, retry.free, task.retries, task.counted))
        if retry.delay:
            self.delay(due, task)
        else:
            self.wake_task(task)

    def decide(
        self,
        job: Job,
        code: int,
        at: float,
        *,
        trigger: TaskRef | None = None,
        message: str = "",
        kill_code: int = ATTEMPT_OVER,
        gone: Collection[Task] = (),
    ) -> None:
        """The attempt's outcome is known: kill what still runs (but for what is `gone`) and end it."""
        job.code, job.trigger = code, trigger
        for task in job.waiting_tasks():
            self._withdraw(job, task)
            task.move(COMPLETED, at)
            task.code = ATTEMPT_OVER
            job.open -= 1
            self.out.append(TaskCompleted(task.ref, ATTEMPT_OVER, at, True))
        running = [task for task in job.tasks.values() if task.live and task.kill_code is None]
        if job.live == 0:
            self.finish_attempt(job, at, message)
            return
        self._move_job(job, DELETION_REQUESTED, at)
        self._mark_killed(running, kill_code)
        self.kill([task for task in running if task not in gone], kill_code)

    def _mark_killed(self, tasks: list[Task], code: int) -> None:
        for task in tasks:
            task.kill_code = code
            task.move(DELETION_REQUESTED, self.now)
            self.dispatcher.dying.add(task)

    def kill(self, tasks: list[Task], code: int) -> None:
        """Ask for tasks of one job to be killed."""
        if tasks:
            reason = {PREEMPTED: "preempted", ATTEMPT_OVER: "the attempt is over"}.get(code, "stopped")
            refs = tuple(task.ref for task in tasks)
            self.out.append(KillTasks(tasks[0].job.info.id, refs, code, reason, self._grace))

    def evict(self, victims: list[Victim], ask: Ask) -> None:
        """Make room for an ask of somebody who has a right to it."""
        for job, tasks in victims:
            job.gave_way_to = self.name(ask.job, job)
            self._note(job, "Preempted", f"{plural(len(tasks), 'task')} evicted for {job.gave_way_to}")
            if job.info.gang:
                self.decide(job, PREEMPTED, self.now, trigger=tasks[0].ref, kill_code=PREEMPTED)
            else:
                self._mark_killed(tasks, PREEMPTED)
                self.kill(tasks, PREEMPTED)

    def stop(self, job: Job) -> None:
        """Somebody wants the job to end; an outcome that is already final stands."""
        job.stop_requested = True
        if job.sub_state in UNDER_WAY:
            self.decide(job, STOPPED_BY_USER, self.now)
        elif job.sub_state in (CREATION_PENDING, ATTEMPT_COMPLETED):
            for ask in list(job.asks.values()):
                self._withdraw(job, ask.task)
            self._complete(job, STOPPED_BY_USER, self.now)

    def finish_attempt(self, job: Job, at: float, message: str = "") -> None:
        """Nothing of the attempt runs any more: try again or end the job."""
        assert job.code is not None
        code = job.code
        job.move(ATTEMPT_COMPLETED, at)
        self.out.append(AttemptCompleted(job.info.id, job.attempt, code, at, job.trigger, message))
        job.quick_ends = count_quick_ends(job.quick_ends, code, job.started_at, at)
        retry = decide_retry(
            code,
            fancy=True,
            maximum=job.info.job_retry_count,
            counted=job.counted,
            random=self._random,
            quick_ends=job.quick_ends,
        )
        if not retry.again:
            self._complete(job, code, at)
        elif job.stop_requested:
            self._complete(job, STOPPED_BY_USER, at)
        else:
            self._retry_job(job, retry, code)

    def _retry_job(self, job: Job, retry: Retry, code: int) -> None:
        job.retries += 1
        job.counted += not retry.free
        job.attempt += 1
        job.tasks = {}
        job.retry_at = self.now + retry.delay
        self.out.append(
            RetryScheduled(job.info.id, job.attempt, job.retry_at, retry.free, job.retries, job.counted)
        )
        when = f"in {duration(retry.delay)}" if retry.delay else "at once"
        count = "for free" if retry.free else f"retry {job.counted} of {job.info.job_retry_count}"
        self._note(job, "Retry", f"attempt {job.attempt - 1} ended with {code}; next one {when}, {count}")
        if retry.delay:
            self.delay(job.retry_at, job)
        else:
            self.wake_job(job)

    def _complete(self, job: Job, code: int, at: float) -> None:
        last: int | None = job.attempt
        if job.sub_state == CREATION_PENDING or job.retry_at is not None:
            last = job.attempt - 1 if job.attempt else None
        job.move(COMPLETED, at)
        job.code = code
        trigger = job.trigger if code != STOPPED_BY_USER else None
        self.out.append(JobCompleted(job.info.id, last, code, at, trigger))
        del self.jobs[job.info.id]

    def delay(self, at: float, what: Job | Task) -> None:
        """Bring a job or task back into the queue at this time."""
        self._delays += 1
        heappush(self._delayed, (at, self._delays, what))

    def wake(self) -> None:
        """Bring back into the queue what is due."""
        # What is due later than anything was ever put off was put off before the clock was set back.
        while self._delayed and not 0 < self._delayed[0][0] - self.now <= LONGEST_DELAY:
            what = heappop(self._delayed)[2]
            if what.sub_state != ATTEMPT_COMPLETED:
                continue
            if isinstance(what, Job):
                self.wake_job(what)
            elif what.job.tasks.get((what.role.name, what.index)) is what:
                self.wake_task(what)

    def next_wake(self) -> float | None:
        """When something is due next."""
        while self._delayed and self._delayed[0][2].sub_state != ATTEMPT_COMPLETED:
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def wake_job(self, job: Job) -> None:
        """Queue the next attempt of a job."""
        job.retry_at = job.started_at = job.code = job.trigger = None
        self._move_job(job, CREATION_PENDING, self.now)
        self.enqueue(job)

    def wake_task(self, task: Task) -> None:
        """Queue the next attempt of a task."""
        task.move(CREATION_PENDING, self.now)
        self.out.append(TaskMoved(task.ref, CREATION_PENDING, self.now))
        self.ask(task.job, task)

    def _withdraw(self, job: Job, task: Task | None) -> None:
        ask = job.asks.pop(_spot(task), None)
        if ask is not None and not self._hands_over:
            self.dispatcher.withdraw(ask)

    def _move_job(self, job: Job, sub_state: str, at: float) -> None:
        job.move(sub_state, at)
        self.out.append(JobMoved(job.info.id, job.attempt, sub_state, at, job.code, job.trigger))

    def _note(self, job: Job, reason: str, message: str) -> None:
        kind: Literal["Normal", "Warning"] = "Normal" if reason == "Scheduled" else "Warning"
        self.out.append(Record(job.info.id, kind, reason, message, self.now))


def _spot(task: Task | None) -> tuple[str, int]:
    return ("", 0) if task is None else (task.role.name, task.index)


def _started(task: Task) -> TaskStart:
    assert task.placement is not None
    return TaskStart(task.ref, task.uid, task.placement)
