"""The plain data the scheduler is told and tells: nodes, virtual clusters, quotas, jobs and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from openpaisdk.protocol import effective_completion, normalise_role, priority_class, virtual_cluster

Priority = Literal["prod", "test", "oppo"]
PRIORITIES: tuple[Priority, ...] = ("prod", "test", "oppo")

PORT_RANGE = (15000, 40000)
ALWAYS_ALLOTTED = {"ssh": 1, "http": 1}


class Node(msgspec.Struct, frozen=True):
    """A machine and what it can give; `gpus` are device indexes, handed out one by one."""

    name: str
    cpu: int
    memory_mb: int
    gpus: tuple[int, ...] = ()


class VirtualCluster(msgspec.Struct, frozen=True):
    """A share of the cluster: `share` is a fraction of every resource; an absolute number wins."""

    name: str
    share: float = 1.0
    cpu: int | None = None
    memory_mb: int | None = None
    gpu: int | None = None


class Quota(msgspec.Struct, frozen=True):
    """What one user may hold at once; None means no limit. User `*` stands for whoever has none."""

    cpu: int | None = None
    memory_mb: int | None = None
    gpu: int | None = None
    jobs: int | None = None


class Request(msgspec.Struct, frozen=True):
    """What one task needs; `ports` are (label, count) pairs beside the `ssh` and `http` of every task."""

    cpu: int
    memory_mb: int
    gpu: int = 0
    ports: tuple[tuple[str, int], ...] = ()

    def all_ports(self) -> dict[str, int]:
        """Label -> count, declared ports first, then `ssh` and `http`."""
        return {**dict(self.ports), **{k: v for k, v in ALWAYS_ALLOTTED.items() if k not in dict(self.ports)}}


class RoleInfo(msgspec.Struct, frozen=True):
    """A task role; `min_failed` and `min_succeeded` are the effective numbers (-1: never triggers)."""

    name: str
    instances: int
    request: Request
    min_failed: int = 1
    min_succeeded: int = -1
    task_retry_count: int = 0


class JobInfo(msgspec.Struct, frozen=True):
    """What the scheduler must know about a job.

    `id` is the server's own and never used twice; `name` is the one people read (`user~job`); `number`
    grows with every submission and is the place in the queue.
    """

    id: str
    name: str
    user: str
    number: int
    submitted_at: float
    roles: tuple[RoleInfo, ...]
    vc: str = "default"
    priority: Priority = "test"
    gang: bool = True
    job_retry_count: int = 0


class TaskRef(msgspec.Struct, frozen=True, order=True):
    """One task attempt: the name under which it is launched, killed and reported."""

    job_id: str
    attempt: int
    role: str
    index: int
    task_attempt: int = 0


class Placement(msgspec.Struct, frozen=True):
    """Where a task attempt runs and what it was given; `node` is empty where the engine places tasks."""

    node: str
    gpus: tuple[int, ...] = ()
    ports: dict[str, tuple[int, ...]] = {}


class TaskStart(msgspec.Struct, frozen=True):
    """A task attempt to be launched; `uid` plays the part of the pod UID (`containerId`, port algorithm)."""

    task: TaskRef
    uid: str
    placement: Placement


class TaskRecord(msgspec.Struct, frozen=True):
    """A task as the server stored it: its newest attempt only (see `actions` for which action writes what).

    `kill_code` is that of the last KillTasks naming this attempt; `retry_at` that of its TaskRetryScheduled.
    """

    role: str
    index: int
    task_attempt: int = 0
    sub_state: str = "AttemptCreationPending"
    code: int | None = None
    completed_at: float | None = None
    started_at: float | None = None
    kill_code: int | None = None
    retries: int = 0
    counted_retries: int = 0
    retry_at: float | None = None
    uid: str = ""
    placement: Placement | None = None


class JobRecord(msgspec.Struct, frozen=True):
    """A job that is not Completed, as the server stored it, with the tasks of its newest attempt.

    Tasks without a row may be left out: they are taken as not yet started. `attempt` is that of the last
    StartAttempt and `started_at` is when it first ran; `retry_at` is that of the last RetryScheduled while
    `sub_state` is AttemptCompleted.
    """

    job: JobInfo
    sub_state: str = "AttemptCreationPending"
    attempt: int = 0
    code: int | None = None
    stop_requested: bool = False
    trigger: TaskRef | None = None
    retries: int = 0
    counted_retries: int = 0
    retry_at: float | None = None
    started_at: float | None = None
    tasks: tuple[TaskRecord, ...] = ()


class Resources(msgspec.Struct, frozen=True):
    """Amounts of what is counted."""

    cpu: int = 0
    memory_mb: int = 0
    gpu: int = 0


class VirtualClusterUsage(msgspec.Struct, frozen=True):
    """A virtual cluster: `used` by all its jobs, `guaranteed` is its share, `total` the whole cluster."""

    used: Resources
    guaranteed: Resources
    total: Resources
    running_jobs: int
    waiting_jobs: int


class NodeUsage(msgspec.Struct, frozen=True):
    """What a node has and what of it is given out."""

    used: Resources
    total: Resources


class Usage(msgspec.Struct, frozen=True):
    """The load of the cluster, for the virtual cluster objects of the REST API and for `server status`."""

    virtual_clusters: dict[str, VirtualClusterUsage]
    nodes: dict[str, NodeUsage]


class Explanation(msgspec.Struct, frozen=True):
    """Why a job is where it is: a sentence or two, and what could be done about it."""

    text: str
    hint: str | None = None


def job_info(
    spec: Mapping[str, Any], *, id: str, user: str, number: int, submitted_at: float, name: str | None = None
) -> JobInfo:
    """Read from a valid job spec (protocol v2) what the scheduler needs; role names are normalised."""
    extras = spec.get("extras") or {}
    roles = []
    for role_name, role in spec["taskRoles"].items():
        wanted = role["resourcePerInstance"]
        min_failed, min_succeeded = effective_completion(role)
        roles.append(
            RoleInfo(
                name=normalise_role(role_name),
                instances=role.get("instances", 1),
                request=Request(
                    cpu=wanted["cpu"],
                    memory_mb=wanted["memoryMB"],
                    gpu=wanted["gpu"],
                    ports=tuple((wanted.get("ports") or {}).items()),
                ),
                min_failed=min_failed,
                min_succeeded=min_succeeded,
                task_retry_count=role.get("taskRetryCount") or 0,
            )
        )
    priority = priority_class(spec)
    return JobInfo(
        id=id,
        name=name or f"{user}~{spec['name']}",
        user=user,
        number=number,
        submitted_at=submitted_at,
        roles=tuple(roles),
        vc=virtual_cluster(spec),
        priority=priority if priority in PRIORITIES else "test",
        gang=extras.get("gangAllocation", True) is not False,
        job_retry_count=spec.get("jobRetryCount") or 0,
    )
