"""Refuses a job that a cluster could never run, where the cluster itself would let it wait for ever."""

from __future__ import annotations

from openpaisdk.commands.wording import memory, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from openpaisdk.core import Cluster


def refuse_what_never_fits(spec: dict[str, Any], cluster: Cluster) -> None:
    """Compares what the job asks for with the virtual cluster's total; our own server does that by itself."""
    from openpaisdk.errors import OpenPAIError

    if cluster.config.alias == "local" or "why" in cluster.extensions:
        return
    from openpaisdk.protocol import virtual_cluster

    try:
        known = cluster.virtual_clusters()
    except OpenPAIError:
        return
    found = known.get(virtual_cluster(spec))
    if found is not None:
        refuse_beyond(spec, found)


def refuse_beyond(spec: dict[str, Any], vc: dict[str, Any]) -> None:
    """Raises QuotaError when a gang (without gang: the largest task) is more than the virtual cluster has."""
    from openpaisdk.commands.cluster_resources import amounts
    from openpaisdk.errors import QuotaError

    total = amounts(vc.get("resourcesTotal"))
    whole = (spec.get("extras") or {}).get("gangAllocation", True) is not False
    asked = asked_for(spec, whole)
    for kind, said in (("gpu", _gpus), ("cpu", _cpus), ("memory", memory)):
        # A total of nothing at all is a server that does not tell.
        if asked[kind] > total[kind] and any(total.values()):
            has = memory(total[kind]) if kind == "memory" else f"{total[kind]:g}"
            less = f"ask for at most {has}, or " if total[kind] else ""
            raise QuotaError(
                f"the job asks for {said(asked[kind])}, this cluster has {has if total[kind] else 'none'}",
                hint=f"it would wait for ever; {less}submit to another cluster with -a",
            )


def asked_for(spec: Mapping[str, Any], whole: bool = True) -> dict[str, float]:
    """gpu, cpu and memory (MB) of all tasks together, or of the largest task."""
    asked = {"gpu": 0.0, "cpu": 0.0, "memory": 0.0}
    for role in (spec.get("taskRoles") or {}).values():
        each = role.get("resourcePerInstance") or {}
        times = (role.get("instances") or 1) if whole else 1
        for kind, key in (("gpu", "gpu"), ("cpu", "cpu"), ("memory", "memoryMB")):
            wanted = (each.get(key) or 0) * times
            asked[kind] = asked[kind] + wanted if whole else max(asked[kind], wanted)
    return asked


def _gpus(count: float) -> str:
    return number(count, "GPU")


def _cpus(count: float) -> str:
    return number(count, "CPU")
