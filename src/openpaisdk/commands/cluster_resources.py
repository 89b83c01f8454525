"""`opai cluster resources`: virtual clusters with what is used and what there is."""

from __future__ import annotations

from openpaisdk.commands.result import Column, Result, View
from openpaisdk.commands.wording import memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from openpaisdk.commands.context import Context


def resources_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("vc", nargs="*", metavar="VC", help="only these virtual clusters")


def resources_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import nearest
    from openpaisdk.errors import NotFoundError

    found = context.cluster().virtual_clusters()
    for name in args.vc:
        if name not in found:
            near = nearest(name, found)
            hint = f"did you mean `{near}`?" if near else f"there are: {', '.join(found)}"
            raise NotFoundError(f"there is no virtual cluster `{name}`", hint=hint)
    rows = [_row(name, vc) for name, vc in found.items() if not args.vc or name in args.vc]
    view = View(
        "table",
        columns=(
            Column("VC", "name"),
            Column("GPUS USED", _used("gpu", _plain), right=True),
            Column("CPUS USED", _used("cpu", _plain), right=True),
            Column("MEMORY USED", _used("memory", memory), right=True),
        ),
        name="name",
        empty="this cluster has no virtual clusters",
    )
    return Result(rows, view)


def _row(name: str, vc: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "capacity": vc.get("capacity"),
        "usedCapacity": vc.get("usedCapacity"),
        "dedicated": vc.get("dedicated", False),
        "resourcesUsed": amounts(vc.get("resourcesUsed")),
        "resourcesGuaranteed": amounts(vc.get("resourcesGuaranteed")),
        "resourcesTotal": amounts(vc.get("resourcesTotal")),
    }


def amounts(found: dict[str, Any] | None) -> dict[str, float]:
    """cpu, memory (MB) and gpu, whichever of the two spellings the server uses."""
    found = found or {}
    return {
        "cpu": found.get("cpu", found.get("vCores", 0)) or 0,
        "memory": found.get("memory", 0) or 0,
        "gpu": found.get("gpu", found.get("GPUs", 0)) or 0,
    }


def _plain(value: float) -> str:
    return f"{value:g}"


def _used(kind: str, shown: Callable[[float], str]) -> Callable[[Any], str]:
    def cell(row: Any) -> str:
        return f"{shown(row['resourcesUsed'][kind])} of {shown(row['resourcesTotal'][kind])}"

    return cell
