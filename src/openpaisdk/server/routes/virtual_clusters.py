"""Virtual clusters: what each is promised and what is in use."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from openpaisdk import scheduler
from openpaisdk.errors import AccessError, NotFoundError, UsageError
from openpaisdk.scheduler.model import VirtualClusterUsage
from openpaisdk.server.http import Call, endpoint

_BASE = "/api/v2/virtual-clusters"


class Resources(msgspec.Struct):
    """An amount; `vCores` and `GPUs` repeat `cpu` and `gpu` for older clients, memory is in MB."""

    cpu: float
    memory: float
    gpu: float
    vCores: float
    GPUs: float


class VirtualClusterView(msgspec.Struct):
    """A virtual cluster; the capacities are percentages of the cluster."""

    capacity: float
    usedCapacity: float
    maxCapacity: float
    dedicated: bool
    resourcesUsed: Resources
    resourcesGuaranteed: Resources
    resourcesTotal: Resources


class SkuType(msgspec.Struct):
    """A size of container that can be asked for by name."""

    cpu: int
    memory: int
    gpu: int


class ClustersQuery(msgspec.Struct):
    """With `nodes`, whatever its value, the answer is about nodes."""

    nodes: str | None = None


class SkuQuery(msgspec.Struct):
    """Only those of one virtual cluster."""

    vc: str | None = None


def _resources(amount: scheduler.Resources) -> Resources:
    cpu, gpu = amount.cpu, amount.gpu
    return Resources(cpu=cpu, memory=amount.memory_mb, gpu=gpu, vCores=cpu, GPUs=gpu)


def _percent(part: scheduler.Resources, whole: scheduler.Resources) -> float:
    # GPUs are what is scarce; a cluster without any is measured by its CPUs.
    if whole.gpu:
        return round(100.0 * part.gpu / whole.gpu, 2)
    return round(100.0 * part.cpu / whole.cpu, 2) if whole.cpu else 0.0


def _view(usage: VirtualClusterUsage) -> VirtualClusterView:
    whole = usage.total
    return VirtualClusterView(
        capacity=_percent(usage.guaranteed, whole),
        usedCapacity=_percent(usage.used, whole),
        maxCapacity=100.0,
        dedicated=False,
        resourcesUsed=_resources(usage.used),
        resourcesGuaranteed=_resources(usage.guaranteed),
        resourcesTotal=_resources(usage.total),
    )


def _one(call: Call, name: str) -> VirtualClusterUsage:
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise UsageError(f"{name!r} is not the name of a virtual cluster: letters, digits and '_' are.")
    found: VirtualClusterUsage | None = _usage(call).virtual_clusters.get(name)
    if found is None:
        raise NotFoundError(f"Virtual cluster {name} is not found.", code="NoVirtualClusterError")
    return found


def _usage(call: Call) -> scheduler.Usage:
    found: scheduler.Usage = call.services.loop.usage()
    return found


@endpoint("GET", _BASE, query=ClustersQuery, returns=dict[str, Any])
async def list_virtual_clusters(call: Call) -> dict[str, Any]:
    """All virtual clusters by name; with `?nodes` the GPUs of each node."""
    usage = _usage(call)
    if call.query.nodes is None:
        return {name: _view(found) for name, found in usage.virtual_clusters.items()}
    return {
        name: {
            "gpuUsed": found.used.gpu,
            "gpuAvailable": found.total.gpu - found.used.gpu,
            "gpuTotal": found.total.gpu,
        }
        for name, found in usage.nodes.items()
    }


@endpoint("GET", _BASE + "/{vc}", returns=VirtualClusterView, errors=(400,))
async def get_virtual_cluster(call: Call) -> VirtualClusterView:
    """One virtual cluster."""
    return _view(_one(call, call.path["vc"]))


def _refuse(call: Call) -> None:
    if call.path["vc"] == "default":
        raise AccessError("Virtual cluster default cannot be changed.", code="ForbiddenUserError")
    raise UsageError(
        "Virtual clusters cannot be changed while the server runs.",
        code="NotImplementedError",
        hint="restart the server with other --virtual-cluster options",
    )


@endpoint("PUT", _BASE + "/{vc}", guard="admin", errors=(400,))
async def update_virtual_cluster(call: Call) -> None:
    """Refused: virtual clusters are set when the server starts."""
    _refuse(call)


@endpoint("DELETE", _BASE + "/{vc}", guard="admin", errors=(400,))
async def delete_virtual_cluster(call: Call) -> None:
    """Refused: virtual clusters are set when the server starts."""
    _refuse(call)


@endpoint("PUT", _BASE + "/{vc}/status", guard="admin", errors=(400,))
async def set_virtual_cluster_status(call: Call) -> None:
    """Refused: virtual clusters are set when the server starts."""
    _refuse(call)


@endpoint("GET", _BASE + "/{vc}/sku-types", returns=dict[str, SkuType], errors=(400,))
async def list_skus_of(call: Call) -> dict[str, SkuType]:
    """Container sizes of one virtual cluster: none are defined here."""
    _one(call, call.path["vc"])
    return {}


@endpoint("GET", "/api/v2/cluster/sku-types", query=SkuQuery, returns=dict[str, SkuType], errors=(404,))
async def list_skus(call: Call) -> dict[str, SkuType]:
    """Container sizes that can be asked for by name: none are defined here."""
    if call.query.vc is not None:
        _one(call, call.query.vc)
    return {}


ENDPOINTS = [
    list_virtual_clusters,
    get_virtual_cluster,
    update_virtual_cluster,
    delete_virtual_cluster,
    set_virtual_cluster_status,
    list_skus_of,
    list_skus,
]
