"""A server in miniature: stores what actions say, runs nothing, and checks every promise on the way."""

from __future__ import annotations

from random import Random
from typing import Any

from openpaisdk.scheduler import (
    AttemptCompleted,
    JobCompleted,
    JobInfo,
    JobMoved,
    JobRecord,
    JobSubmitted,
    KillTasks,
    LaunchTasks,
    Node,
    Placement,
    Quota,
    Record,
    Request,
    RetryScheduled,
    RoleInfo,
    Scheduler,
    StartAttempt,
    TaskCompleted,
    TaskEnded,
    TaskMoved,
    TaskRecord,
    TaskRef,
    TaskRetryScheduled,
    TaskStarted,
    Tick,
    VirtualCluster,
    WakeAt,
)
from openpaisdk.scheduler.transitions import MOVES

ONE_NODE = (Node("n1", 4, 8192, (0, 1, 2, 3)),)
ONE_CLUSTER = (VirtualCluster("default"),)


def role(name="worker", instances=1, cpu=1, memory_mb=100, gpu=0, ports=(), **policy) -> RoleInfo:
    policy.setdefault("min_failed", 1)
    policy.setdefault("min_succeeded", instances)
    return RoleInfo(name, instances, Request(cpu, memory_mb, gpu, tuple(ports)), **policy)


def job(number: int, *roles: RoleInfo, user="ann", **more) -> JobInfo:
    more.setdefault("name", f"{user}~job{number}")
    return JobInfo(
        id=str(number), user=user, number=number, submitted_at=0.0, roles=roles or (role(),), **more
    )


class World:
    """`live` is what runs or comes up; `rows` and `tasks` are the tables of the store."""

    def __init__(
        self,
        nodes=ONE_NODE,
        clusters=ONE_CLUSTER,
        quotas: dict[str, Quota] | None = None,
        **settings: Any,
    ) -> None:
        self.nodes, self.clusters, self.quotas, self.settings = nodes, clusters, quotas or {}, settings
        self.scheduler = self._new()
        self.now = 1000.0
        self.rows: dict[str, dict[str, Any]] = {}
        self.tasks: dict[tuple[str, int, str, int], dict[str, Any]] = {}
        self.live: dict[TaskRef, Placement] = {}
        self.launched: set[TaskRef] = set()
        self.killed: set[TaskRef] = set()
        self.done: dict[str, int] = {}
        self.wake: float | None = None
        self.records: list[Record] = []

    def _new(self) -> Scheduler:
        return Scheduler(self.nodes, self.clusters, quotas=self.quotas, random=Random(1), **self.settings)

    def submit(self, info: JobInfo) -> list:
        self.scheduler.admit(info)
        self.rows[info.id] = {"job": info, "sub_state": "AttemptCreationPending", "attempt": 0, "retries": 0}
        return self.send(JobSubmitted(info))

    def send(self, *events) -> list:
        return self.apply(self.scheduler.handle_all(events, self.now))

    def start(self, ref: TaskRef) -> list:
        return self.send(TaskStarted(ref, self.now))

    def end(self, ref: TaskRef, code: int = 0) -> list:
        return self.send(TaskEnded(ref, code, self.now))

    def end_killed(self) -> None:
        for ref in sorted(self.killed & set(self.live)):
            self.end(ref, 143)

    def tick(self, seconds: float) -> list:
        self.now += seconds
        return self.send(Tick())

    def crash(self) -> list:
        """Forget everything but the store, and begin again."""
        self.scheduler = self._new()
        self.wake = None
        relaunched = self.scheduler.restore(self.stored(), self.now)
        return self.apply(relaunched)

    def stored(self) -> list[JobRecord]:
        found = []
        for job_id, row in self.rows.items():
            if job_id in self.done:
                continue
            tasks = tuple(
                TaskRecord(role=key[2], index=key[3], **task)
                for key, task in self.tasks.items()
                if key[0] == job_id and key[1] == row["attempt"]
            )
            fresh = row["sub_state"] == "AttemptCreationPending"
            found.append(JobRecord(**row, tasks=() if fresh else tasks))
        return found

    def refs(self, number: int) -> list[TaskRef]:
        return sorted(ref for ref in self.live if ref.job_id == str(number))

    def state(self, number: int) -> str:
        return self.rows[str(number)]["sub_state"]

    def apply(self, actions: list) -> list:
        for action in actions:
            getattr(self, "_" + type(action).__name__)(action)
        return actions

    def _move(self, row: dict[str, Any], sub_state: str) -> None:
        assert sub_state in MOVES[row["sub_state"]], (row["sub_state"], sub_state)
        row["sub_state"] = sub_state

    def _task(self, ref: TaskRef) -> dict[str, Any]:
        return self.tasks[(ref.job_id, ref.attempt, ref.role, ref.index)]

    def _StartAttempt(self, a: StartAttempt) -> None:
        row = self.rows[a.job_id]
        self._move(row, "AttemptCreationRequested")
        assert a.attempt == row["retries"]
        row.update(attempt=a.attempt, code=None, trigger=None, retry_at=None, started_at=None)
        for part in row["job"].roles:
            for index in range(part.instances):
                self.tasks[(a.job_id, a.attempt, part.name, index)] = {"sub_state": "AttemptCreationPending"}

    def _LaunchTasks(self, a: LaunchTasks) -> None:
        row = self.rows[a.job_id]
        again = all(start.task in self.live for start in a.tasks)
        if row["job"].gang and not again:
            assert len(a.tasks) == sum(part.instances for part in row["job"].roles), "a gang starts whole"
        for start in a.tasks:
            if again:
                assert self.live[start.task] == start.placement
                continue
            assert start.task not in self.launched, "an attempt starts once"
            task = self._task(start.task)
            self._move(task, "AttemptCreationRequested")
            task.update(
                task_attempt=start.task.task_attempt, uid=start.uid, placement=start.placement, kill_code=None
            )
            task.update(code=None, started_at=None, completed_at=None, retry_at=None)
            if not self.settings.get("hands_over"):
                self._check_room(start.task, start.placement)
            self.live[start.task] = start.placement
            self.launched.add(start.task)
        if not again and not self.settings.get("hands_over"):
            self._check_quota(row["job"], [start.task for start in a.tasks])

    def needs(self, ref: TaskRef) -> Request:
        return next(part.request for part in self.rows[ref.job_id]["job"].roles if part.name == ref.role)

    def _check_room(self, ref: TaskRef, placed: Placement) -> None:
        node = next(node for node in self.nodes if node.name == placed.node)
        wanted = self.needs(ref)
        there = [other for other, where in self.live.items() if where.node == placed.node]
        ports = [p for other in there for group in self.live[other].ports.values() for p in group]
        mine = [p for group in placed.ports.values() for p in group]
        assert len(mine) == len(set(mine)) and not set(mine) & set(ports), "no port twice"
        assert {k: len(v) for k, v in placed.ports.items()} == wanted.all_ports()
        assert len(placed.gpus) == len(set(placed.gpus)) == wanted.gpu and set(placed.gpus) <= set(node.gpus)
        held = {gpu for other in there for gpu in self.live[other].gpus}
        assert not set(placed.gpus) & held, "no GPU twice"
        if wanted.cpu:
            assert sum(self.needs(other).cpu for other in there) + wanted.cpu <= node.cpu
        if wanted.memory_mb:
            assert sum(self.needs(other).memory_mb for other in there) + wanted.memory_mb <= node.memory_mb

    def _check_quota(self, info: JobInfo, started: list[TaskRef]) -> None:
        """A quota that was lowered may be exceeded by what runs, never by what starts."""
        quota = self.quotas.get(info.user) or self.quotas.get("*") or Quota()
        mine = [ref for ref in self.live if self.rows[ref.job_id]["job"].user == info.user]
        for word in ("cpu", "memory_mb", "gpu"):
            limit = getattr(quota, word)
            if limit is not None and any(getattr(self.needs(ref), word) for ref in started):
                assert sum(getattr(self.needs(ref), word) for ref in mine) <= limit
        if quota.jobs is not None and set(self.refs(int(info.id))) == set(started):
            assert len({ref.job_id for ref in mine}) <= quota.jobs

    def _TaskMoved(self, a: TaskMoved) -> None:
        task = self._task(a.task)
        self._move(task, a.sub_state)
        if a.sub_state == "AttemptRunning":
            task["started_at"] = a.at

    def _JobMoved(self, a: JobMoved) -> None:
        row = self.rows[a.job_id]
        self._move(row, a.sub_state)
        row.update(code=a.code, trigger=a.trigger)
        if a.sub_state == "AttemptRunning":
            row["started_at"] = a.at
        if a.sub_state == "AttemptCreationPending":
            row["retry_at"] = None

    def _KillTasks(self, a: KillTasks) -> None:
        for ref in a.tasks:
            assert ref in self.live, "only what runs is killed"
            task = self._task(ref)
            if task.get("kill_code") is None:
                self._move(task, "AttemptDeletionRequested")
            assert task.get("kill_code") in (None, a.code)
            task["kill_code"] = a.code
            self.killed.add(ref)

    def _TaskCompleted(self, a: TaskCompleted) -> None:
        task = self._task(a.task)
        if self.live.pop(a.task, None) is not None:
            # A gang that failed to launch is over without having been asked to end.
            if task["sub_state"] != "AttemptDeletionRequested" or task.get("kill_code") is not None:
                assert task["sub_state"] != "Completed"
            task["sub_state"] = "AttemptCompleted"
        if a.final:
            self._move(task, "Completed")
        task.update(code=a.code, completed_at=a.at)

    def _TaskRetryScheduled(self, a: TaskRetryScheduled) -> None:
        assert a.task.task_attempt == a.retries
        self._task(a.task).update(retries=a.retries, counted_retries=a.counted_retries, retry_at=a.at)

    def _AttemptCompleted(self, a: AttemptCompleted) -> None:
        row = self.rows[a.job_id]
        assert not self.refs(int(a.job_id)), "nothing runs any more"
        self._move(row, "AttemptCompleted")
        row.update(code=a.code, trigger=a.trigger)

    def _RetryScheduled(self, a: RetryScheduled) -> None:
        assert a.attempt == a.retries
        self.rows[a.job_id].update(retries=a.retries, counted_retries=a.counted_retries, retry_at=a.at)

    def _JobCompleted(self, a: JobCompleted) -> None:
        assert a.job_id not in self.done, "terminal is final"
        assert not self.refs(int(a.job_id))
        self._move(self.rows[a.job_id], "Completed")
        self.done[a.job_id] = a.code

    def _Record(self, a: Record) -> None:
        self.records.append(a)

    def _WakeAt(self, a: WakeAt) -> None:
        assert a.at > self.now
        self.wake = a.at
