"""Jobs for clusters that know nothing of us: their code in the workspace or the job text, and the runtime."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from openpaisdk.core import Cluster
    from openpaisdk.workspace.shipping import Plan

LARGEST_TEXT = 100 * 1024
# Runtime and script around the commands, beside code and spec.
ROOM_FOR_RUNTIME = 26_000
# Words in a command that only mean something where our runtime is.
OUR_WORDS = ("PAI_SDK_", "openpai")


def carry_code(
    spec: Mapping[str, Any],
    cluster: Cluster,
    plan: Plan,
    *,
    required: bool,
    on_sent: Callable[[int, int], Any] | None = None,
) -> dict[str, Any] | None:
    """Put the code where the jobs of this cluster find it; what was sent, with the `note` for the spec."""
    from openpaisdk.errors import UsageError
    from openpaisdk.workspace import job_storage, packed_code

    if not plan.files:
        return None
    told = {
        "manifest": plan.sha256,
        "files": plan.files,
        "bytes": plan.bytes,
        "left_out": plan.left_out,
    }
    storage = job_storage(cluster) if _wants_runtime(spec) else None
    if storage is not None:
        sent = storage.send(plan, str(spec["name"]), on_sent)
        return {**told, "sent": sent, "note": {"workspace": plan.sha256}}
    room = LARGEST_TEXT - ROOM_FOR_RUNTIME - len(json.dumps(spec).encode())
    try:
        text, packing = packed_code(plan, room=room)
    except UsageError:
        if required:
            raise
        return None
    return {**told, "sent": len(text), "note": {"text": text, "packing": packing}}


def as_sent(spec: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    """The spec as this cluster understands it: wrapped where it needs code, saved outputs or the runtime."""
    from openpaisdk.job.code import keeps_files

    if cluster.config.alias == "local" or not _may_need(spec, cluster) or keeps_files(cluster):
        return spec
    from openpaisdk.workspace import job_storage, runtime_text, wrap

    ours = (spec.get("extras") or {}).get("openpaisdk") or {}
    wants_runtime = _wants_runtime(spec)
    storage = job_storage(cluster) if wants_runtime else None
    if (ours.get("code") or {}).get("manifest"):
        from openpaisdk.errors import UsageError

        raise UsageError(
            f"the code of {spec['name']} is on another cluster", hint="submit it from the folder that has it"
        )
    wrapped: dict[str, Any] = wrap(
        spec,
        runtime=runtime_text(notebook="notebook" in ours) if wants_runtime else "",
        workspace=storage.for_runtime() if storage else None,
    )
    return wrapped


def _may_need(spec: Mapping[str, Any], cluster: Cluster) -> bool:
    """Whether a cluster that knows nothing of us would have to be helped; a job file is sent as it is."""
    extras = spec.get("extras") or {}
    ours = extras.get("openpaisdk") or {}
    if "wrapped" in ours:
        return False
    if ours.get("code") or ours.get("save") or ours.get("callbacks"):
        return True
    if extras.get("submitFrom") != "openpaisdk" or not _wants_runtime(spec):
        return False
    commands = [line for role in spec["taskRoles"].values() for line in role["commands"]]
    named = any(word in line for line in commands for word in OUR_WORDS)
    return named or bool(cluster.config.workspace or cluster.config.hdfs_web_uri)


def _wants_runtime(spec: Mapping[str, Any]) -> bool:
    return ((spec.get("extras") or {}).get("openpaisdk") or {}).get("runtime") is not False
