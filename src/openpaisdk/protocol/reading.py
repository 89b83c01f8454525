"""Answers read off a valid job spec: totals, completion, image, virtual cluster; and masking of secrets."""

from __future__ import annotations

from collections.abc import Mapping

from openpaisdk.protocol.problems import MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Spec = Mapping[str, Any]


def instances(role: Spec) -> int:
    return int(role.get("instances") or 1)


def effective_completion(role: Spec) -> tuple[int, int]:
    """`(min_failed, min_succeeded)` as OpenPAI's server has it: missing, null and 0 mean the default."""
    completion = role.get("completion") or {}
    return (
        int(completion.get("minFailedInstances") or 1),
        int(completion.get("minSucceededInstances") or instances(role)),
    )


def totals(spec: Spec) -> tuple[int, int, int]:
    """`(gpus, tasks, task roles)` of the whole job."""
    roles = list(spec["taskRoles"].values())
    gpus = sum(instances(role) * int(role["resourcePerInstance"].get("gpu") or 0) for role in roles)
    return gpus, sum(map(instances, roles)), len(roles)


def virtual_cluster(spec: Spec) -> str:
    return str((spec.get("defaults") or {}).get("virtualCluster") or "default")


def priority_class(spec: Spec) -> str | None:
    hived = (spec.get("extras") or {}).get("hivedScheduler")
    found = hived.get("jobPriorityClass") if isinstance(hived, Mapping) else None
    return str(found) if found else None


def prerequisite(spec: Spec, kind: str, name: str | None) -> dict[str, Any] | None:
    """The prerequisite of this type and name."""
    for item in spec.get("prerequisites") or ():
        if item["type"] == kind and item["name"] == name:
            return dict(item)
    return None


def image_uri(spec: Spec, role: str) -> str | None:
    """The image that a task role runs in."""
    found = prerequisite(spec, "dockerimage", spec["taskRoles"][role].get("dockerImage"))
    return str(found["uri"]) if found else None


def mask_secrets(data: Any) -> Any:
    """The spec with `secrets` and literal registry passwords hidden; the original is left alone.

    `secrets` becomes one string, as OpenPAI's server answers it. A password that refers to a secret stays.
    """
    if not isinstance(data, dict):
        return data
    masked = dict(data)
    if masked.get("secrets") is not None:
        masked["secrets"] = MASK
    if isinstance(masked.get("prerequisites"), list):
        masked["prerequisites"] = [_mask_auth(item) for item in masked["prerequisites"]]
    return masked


def _mask_auth(item: Any) -> Any:
    auth = item.get("auth") if isinstance(item, dict) else None
    if not isinstance(auth, dict) or "password" not in auth:
        return item
    from openpaisdk.protocol.templates import is_reference

    if is_reference(auth["password"]):
        return item
    return {**item, "auth": {**auth, "password": MASK}}
