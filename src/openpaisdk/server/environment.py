"""The variables a task finds: OpenPAI's PAI_* and FC_* names, and what our own client and runtime read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from openpaisdk.protocol import effective_completion, normalise_role

NAMESPACE = "default"


class Peer(NamedTuple):
    """One task of the job as the others see it; `ip` is empty while it has no place."""

    role: str  # normalised
    idx: int
    ip: str
    ports: Mapping[str, Sequence[int]]


class Identity(NamedTuple):
    """Who a task attempt is."""

    user: str
    job: str
    debug_id: str
    job_uid: str
    attempt: int
    attempt_uid: str
    role: str  # as written in the job spec
    idx: int
    task_attempt: int
    task_uid: str
    pod_uid: str


def job_variables(spec: Mapping[str, Any], *, user: str, job: str, vc: str) -> dict[str, str]:
    """What is the same for every task and every attempt of a job."""
    roles: Mapping[str, Mapping[str, Any]] = spec["taskRoles"]
    names = ",".join(roles)
    tasks = str(sum(_instances(role) for role in roles.values()))
    count = str(len(roles))
    found = {
        "PAI_FRAMEWORK_NAME": f"{user}~{job}",
        "PAI_JOB_NAME": f"{user}~{job}",
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "PAI_DEFAULT_FS_URI": "",
        "PAI_VIRTUAL_CLUSTER": vc,
        "PAI_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLES_NUM": count,
        "PAI_JOB_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLE_LIST": names,
        "PAI_JOB_TASK_ROLE_LIST": names,
        "PAI_TASKS_NUM": tasks,
        "PAI_JOB_TASK_COUNT": tasks,
    }
    for name, role in roles.items():
        wanted = role["resourcePerInstance"]
        shm = (role.get("extraContainerOptions") or {}).get("shmMB") or 0
        min_failed, min_succeeded = effective_completion(role)
        found[f"PAI_TASK_ROLE_TASK_COUNT_{name}"] = str(_instances(role))
        found[f"PAI_RESOURCE_{name}"] = f"{wanted['gpu']},{wanted['cpu']},{wanted['memoryMB']},{shm}"
        found[f"PAI_MIN_FAILED_TASK_COUNT_{name}"] = str(min_failed)
        found[f"PAI_MIN_SUCCEEDED_TASK_COUNT_{name}"] = str(min_succeeded)
    return found


def peer_variables(peers: Sequence[Peer]) -> dict[str, str]:
    """Where every task of the attempt can be reached."""
    found: dict[str, str] = {}
    hosts: dict[str, list[str]] = {}
    for role, index, ip, ports in peers:
        if not ip:
            continue
        found[f"PAI_HOST_IP_{role}_{index}"] = ip
        for label, numbers in ports.items():
            joined = ",".join(map(str, numbers))
            found[f"PAI_PORT_LIST_{role}_{index}_{label}"] = joined
            found[f"PAI_{role}_{index}_{label}_PORT"] = joined
        hosts.setdefault(role, []).append(f"{ip}:{_first(ports, 'http')}")
    for role, addresses in hosts.items():
        found[f"PAI_TASK_ROLE_{role}_HOST_LIST"] = ",".join(addresses)
    found["PAI_TASK_ROLE_INSTANCES"] = ",".join(f"{peer.role}:{peer.idx}" for peer in peers)
    return found


def task_variables(who: Identity, *, own: Peer, gpus: Sequence[int], workdir: str) -> dict[str, str]:
    """What only this task attempt has."""
    http = _first(own.ports, "http")
    devices = ",".join(map(str, gpus))
    index = str(who.idx)
    role = normalise_role(who.role)
    found = {
        "PAI_CURRENT_TASK_ROLE_NAME": who.role,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": index,
        "PAI_TASK_INDEX": index,
        "PAI_CONTAINER_ID": who.pod_uid,
        "PAI_CURRENT_CONTAINER_IP": own.ip,
        "PAI_CONTAINER_HOST_IP": own.ip,
        "PAI_CURRENT_CONTAINER_PORT": http,
        "PAI_CONTAINER_HOST_PORT": http,
        "PAI_CONTAINER_SSH_PORT": _first(own.ports, "ssh"),
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(
            f"{label}:{','.join(map(str, numbers))};" for label, numbers in own.ports.items()
        ),
        "PAI_WORK_DIR": workdir,
        "NVIDIA_VISIBLE_DEVICES": devices or "none",
        "CUDA_VISIBLE_DEVICES": devices,
        "FC_FRAMEWORK_NAMESPACE": NAMESPACE,
        "FC_FRAMEWORK_NAME": who.debug_id,
        "FC_TASKROLE_NAME": role,
        "FC_TASK_INDEX": index,
        "FC_CONFIGMAP_NAME": f"{who.debug_id}-attempt",
        "FC_POD_NAME": f"{who.debug_id}-{role}-{index}",
        "FC_FRAMEWORK_UID": who.job_uid,
        "FC_FRAMEWORK_ATTEMPT_ID": str(who.attempt),
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"{who.attempt}_{who.attempt_uid}",
        "FC_CONFIGMAP_UID": who.attempt_uid,
        "FC_TASKROLE_UID": f"{who.attempt_uid}-{role}",
        "FC_TASK_UID": who.task_uid,
        "FC_TASK_ATTEMPT_ID": str(who.task_attempt),
        "FC_TASK_ATTEMPT_INSTANCE_UID": f"{who.task_attempt}_{who.pod_uid}",
        "FC_POD_UID": who.pod_uid,
    }
    for label, numbers in own.ports.items():
        found[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] = ",".join(map(str, numbers))
    return found


def sdk_variables(
    *,
    workspace: str,
    output: str,
    task_dir: str,
    uri: str,
    user: str,
    token: str,
    tls: bool,
    grace: float,
    kind: str,
) -> dict[str, str]:
    """What our client and runtime inside the job read: its folders, and the cluster it belongs to."""
    found = {
        "PAI_SDK_JOB_WORKSPACE": workspace,
        "PAI_SDK_JOB_OUTPUT_DIR": output,
        "PAI_SDK_TASK_DIR": task_dir,
        "PAI_SDK_GRACE_SECONDS": f"{grace:g}",
        "OPAI_PAI_URI": uri,
        "OPAI_USER": user,
        "OPAI_TOKEN": token,
    }
    if kind:
        found["PAI_SDK_JOB_KIND"] = kind
    if tls:
        found["OPAI_VERIFY"] = "false"  # the address is this machine's own, which no certificate names
    return found


def _instances(role: Mapping[str, Any]) -> int:
    return int(role.get("instances") or 1)


def _first(ports: Mapping[str, Sequence[int]], label: str) -> str:
    numbers = ports.get(label) or ()
    return str(numbers[0]) if numbers else ""
