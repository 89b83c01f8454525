"""The scheduler: events and the time in, actions out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from openpaisdk.errors import NotFoundError

from .actions import Action, WakeAt
from .admission import admit
from .events import (
    Event,
    JobSubmitted,
    LaunchFailed,
    LimitsChanged,
    NodesChanged,
    StopRequested,
    TaskEnded,
    TaskLost,
    TaskPreparing,
    TaskStarted,
    Tick,
)
from .explain import explain
from .lifecycle import UNDER_WAY, Lifecycle
from .model import (
    Explanation,
    JobInfo,
    JobRecord,
    Node,
    NodeUsage,
    Quota,
    Resources,
    TaskRef,
    Usage,
    VirtualCluster,
    VirtualClusterUsage,
)
from .placement import Nodes, PortInUse
from .policy import NODE_LOST
from .restoring import rebuild
from .shares import Shares
from .state import Job, Task, Vector, plus

GRACE = 30.0
DEFAULT_CLUSTERS = (VirtualCluster("default"),)


class Scheduler:
    """Decides; never acts, never reads a clock, never waits. Not for more than one thread.

    `hands_over`: the engine has a queue and places tasks itself, so every job is launched at once, without
    node and GPUs. `random` draws the delays of conflicting retries. `port_in_use` tells ports that others
    hold on the node. `discreet`: nobody is told the names of other users' jobs.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        virtual_clusters: Iterable[VirtualCluster] = DEFAULT_CLUSTERS,
        *,
        quotas: Mapping[str, Quota] | None = None,
        hands_over: bool = False,
        port_in_use: PortInUse = (),
        random: Random | None = None,
        grace: float = GRACE,
        discreet: bool = False,
    ) -> None:
        self._nodes = Nodes(nodes, port_in_use)
        self._shares = Shares(virtual_clusters, quotas or {}, self._nodes.total)
        self._hands_over = hands_over
        self._life = Lifecycle(
            self._nodes,
            self._shares,
            random=random or Random(0),  # noqa: S311 - spreads retries, hides nothing
            grace=grace,
            hands_over=hands_over,
            discreet=discreet,
        )
        self._wake_asked: float | None = None

    def __len__(self) -> int:
        """How many jobs are not over."""
        return len(self._life.jobs)

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._life.jobs

    def admit(self, job: JobInfo) -> None:
        """Raise QuotaError for a job that could never run here; ask before storing it."""
        admit(job, self._nodes, self._shares, hands_over=self._hands_over)

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in one event and say what follows from it."""
        return self.handle_all((event,), now)

    def handle_all(self, events: Iterable[Event], now: float) -> list[Action]:
        """The same for several at once, decided together.

        Ends of tasks are taken by the time at which they happened: after a restart many are learnt in one
        go, and the first by completion time decides an attempt.
        """
        self._life.now = now
        events = tuple(events)
        ends = iter(
            sorted((e for e in events if isinstance(e, TaskEnded | TaskLost)), key=lambda end: end.at)
        )
        for event in events:
            self._take(next(ends) if isinstance(event, TaskEnded | TaskLost) else event)
        return self._outcome(now)

    def restore(self, jobs: Iterable[JobRecord], now: float) -> list[Action]:
        """Take over, in a new scheduler, the jobs that the store holds, and say what is still to be done.

        Intents written but perhaps not launched come as LaunchTasks with the stored uid and placement,
        kills perhaps not delivered as KillTasks, and what else is due as in `handle`. Tasks stored as
        AttemptRunning get no action: the server looks after them and reports those that have ended
        meanwhile.
        """
        self._life.now = now
        rebuild(jobs, self._life, hands_over=self._hands_over)
        return self._outcome(now)

    def _outcome(self, now: float) -> list[Action]:
        self._life.wake()
        if not self._hands_over:
            self._life.dispatcher.settle(now)
        out, self._life.out = self._life.out, []
        due = self._life.next_wake()
        if due is not None and due != self._wake_asked:
            out.append(WakeAt(due))
        self._wake_asked = due
        return out

    def _take(self, event: Event) -> None:
        life = self._life
        match event:
            case JobSubmitted(job=info):
                if info.id not in life.jobs:
                    life.jobs[info.id] = job = Job(info)
                    life.enqueue(job)
            case StopRequested(job_id=job_id):
                if (found := life.jobs.get(job_id)) is not None and not found.stop_requested:
                    life.stop(found)
            case TaskPreparing(task=ref):
                if (task := self._live(ref)) is not None:
                    life.prepare(task)
            case TaskStarted(task=ref, at=at):
                if (task := self._live(ref)) is not None:
                    life.run(task, at)
            case TaskEnded(task=ref, code=code, at=at, message=message):
                if (task := self._live(ref)) is not None:
                    life.end(task, code, at, message)
            case TaskLost(task=ref, at=at, message=message):
                if (task := self._live(ref)) is not None:
                    life.end(task, NODE_LOST, at, message)
            case LaunchFailed():
                self._launch_failed(event)
            case NodesChanged(nodes=nodes):
                self._nodes.change(nodes)
                self._shares.measure(self._nodes.total)
                life.dispatcher.changed()
            case Tick():
                # A clock that was set back meanwhile makes it come too early: then it is asked for again.
                self._wake_asked = None
            case LimitsChanged(virtual_clusters=clusters, quotas=quotas):
                self._shares.change(clusters, quotas, self._nodes.total)
                life.dispatcher.changed()

    def _launch_failed(self, event: LaunchFailed) -> None:
        tasks = [task for ref in event.tasks if (task := self._live(ref)) is not None]
        # A gang that could not be launched has failed as a whole, whatever its completion policy says.
        if tasks and tasks[0].job.info.gang and tasks[0].job.sub_state in UNDER_WAY:
            first = tasks[0]
            self._life.decide(
                first.job, event.code, event.at, trigger=first.ref, message=event.reason, gone=set(tasks)
            )
        for task in tasks:
            self._life.end(task, event.code, event.at, event.reason)

    def _live(self, ref: TaskRef) -> Task | None:
        job = self._life.jobs.get(ref.job_id)
        if job is None or job.attempt != ref.attempt:
            return None
        task = job.tasks.get((ref.role, ref.index))
        return task if task is not None and task.live and task.task_attempt == ref.task_attempt else None

    def why(self, job_id: str, now: float) -> Explanation:
        """Why the job is where it is, in words, and a hint; NotFoundError for one that is over or unknown."""
        job = self._life.jobs.get(job_id)
        if job is None:
            raise NotFoundError(f"no job with id {job_id} is waiting or running", code="NoJobError")
        return explain(job, self._life, now)

    def queue(self, vc: str | None = None) -> list[str]:
        """Ids of the jobs that wait for resources, in the order in which they are looked at."""
        jobs = [ask.job.info for ask in self._life.dispatcher.waiting()]
        return list(dict.fromkeys(info.id for info in jobs if vc is None or info.vc == vc))

    def usage(self) -> Usage:
        """The load by virtual cluster and by node."""
        waiting: dict[str, set[str]] = {}
        for ask in self._life.dispatcher.waiting():
            waiting.setdefault(ask.job.info.vc, set()).add(ask.job.info.id)
        total = _resources(self._nodes.total)
        clusters = {
            name: VirtualClusterUsage(
                used=_resources(plus(state.used, state.lent)),
                guaranteed=_resources(state.share),
                total=total,
                running_jobs=len(state.jobs),
                waiting_jobs=len(waiting.get(name, ())),
            )
            for name, state in self._shares.clusters.items()
        }
        nodes = {
            name: NodeUsage(_resources(state.used), _resources(state.capacity))
            for name, state in self._nodes.states.items()
        }
        return Usage(clusters, nodes)


def _resources(vector: Vector) -> Resources:
    return Resources(vector[0], vector[1], vector[2])
