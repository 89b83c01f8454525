"""Refuses at the door what could never run: more than the cluster has or than the user may hold."""

from __future__ import annotations

from openpaisdk.errors import QuotaError

from .model import JobInfo
from .placement import Nodes, how_many, place
from .shares import Shares
from .state import CPU, GPU, MEMORY, NOTHING, Ask, Job, Vector
from .wording import amount, bare_amount

_ASKED = (GPU, CPU, MEMORY)


def admit(info: JobInfo, nodes: Nodes, shares: Shares, *, hands_over: bool) -> None:
    """Raise QuotaError where the job would wait for ever."""
    ask = Ask(Job(info))
    least = ask.total if info.gang else _largest_task(ask)
    _check_quota(info, least, shares)
    if not hands_over:
        _check_cluster(info, ask, least, nodes)


def _largest_task(ask: Ask) -> Vector:
    largest = NOTHING
    for _, needs, _ in ask.parts:
        largest = tuple(map(max, largest, needs))  # type: ignore[assignment]
    return largest


def _check_quota(info: JobInfo, least: Vector, shares: Shares) -> None:
    quota = shares.quota(info.user)
    if quota is None:
        return
    limits = (quota.cpu, quota.memory_mb, quota.gpu)
    for d in _ASKED:
        limit = limits[d]
        if limit is not None and least[d] > limit:
            most = bare_amount(d, limit)
            raise QuotaError(
                f"the job asks for {amount(d, least[d])}, the quota of {info.user} is {most}",
                hint=f"it would wait for ever; ask for at most {most}, or ask for a larger quota",
            )
    if quota.jobs is not None and quota.jobs < 1:
        raise QuotaError(f"{info.user} may run no jobs here", hint="ask an administrator for a larger quota")


def _check_cluster(info: JobInfo, ask: Ask, least: Vector, nodes: Nodes) -> None:
    for d in _ASKED:
        if least[d] > nodes.total[d]:
            raise QuotaError(
                f"the job asks for {amount(d, least[d])}, this cluster has {bare_amount(d, nodes.total[d])}",
                hint=_advice(d, nodes.total[d]),
            )
    room = nodes.empty_room()
    for role_index, needs, _ in ask.parts:
        if any(how_many(left, needs) for _, left in room):
            continue
        for d in _ASKED:
            most = max((left[d] for _, left in room), default=0)
            if needs[d] > most:
                role = info.roles[role_index].name
                raise QuotaError(
                    f"each task of {role} asks for {amount(d, needs[d])}, "
                    f"the largest node of this cluster has {bare_amount(d, most)}",
                    hint=_advice(d, most),
                )
        raise QuotaError(
            f"no node of this cluster has all that a task of {info.roles[role_index].name} asks for at once",
            hint="it would wait for ever; ask for less of one resource, or submit to another cluster with -a",
        )
    if info.gang and place(room, ask.parts) is None:
        raise QuotaError(
            "the tasks of the job do not fit onto the nodes of this cluster at the same time",
            hint="ask for smaller or fewer tasks, or set extras.gangAllocation to false to start them singly",
        )


def _advice(dimension: int, most: int) -> str:
    if most <= 0:
        return "it would wait for ever; ask for none, or submit to another cluster with -a"
    return (
        f"it would wait for ever; ask for at most {bare_amount(dimension, most)}, "
        "or submit to another cluster with -a"
    )
