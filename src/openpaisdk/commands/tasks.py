"""The tasks inside a job detail: picked by `role/index`, with where to reach them."""

from __future__ import annotations

from openpaisdk.commands.wording import said_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def each_task(detail: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(`role/index`, status) of every task."""
    for role, entry in (detail.get("taskRoles") or {}).items():
        for status in entry.get("taskStatuses") or ():
            yield f"{role}/{status['taskIndex']}", status


def parse_task(text: str) -> tuple[str, int]:
    """`worker/0` or `worker` (index 0) as (role, index)."""
    from openpaisdk.errors import UsageError
    from openpaisdk.protocol import normalise_role

    role, mark, index = text.partition("/")
    if not role or (mark and not index.isdigit()):
        raise UsageError(f"{text!r} does not name a task", hint="write ROLE/INDEX, for example worker/0")
    return normalise_role(role), int(index or 0)


def pick_task(detail: dict[str, Any], wanted: str | None) -> tuple[str, dict[str, Any]]:
    """The task asked for, or the first running one."""
    from openpaisdk.errors import ConflictError, NotFoundError

    tasks = dict(each_task(detail))
    name = detail.get("name", "the job")
    if wanted:
        role, index = parse_task(wanted)
        label = f"{role}/{index}"
        if label not in tasks:
            raise NotFoundError(
                f"job {name} has no task {label}", hint=f"it has: {', '.join(tasks) or 'none yet'}"
            )
        return label, tasks[label]
    for label, status in tasks.items():
        if status.get("taskState") == "RUNNING":
            return label, status
    said = said_state(str(detail["jobStatus"]["state"]))
    raise ConflictError(f"no task of {name} is running (the job {said})", hint=f"opai job why {name}")


def ssh_addresses(detail: dict[str, Any]) -> list[dict[str, Any]]:
    """Where each running task listens for ssh; OpenPAI tells it by address and the port labelled `ssh`."""
    found = []
    for label, status in each_task(detail):
        if status.get("taskState") != "RUNNING":
            continue
        port = str((status.get("containerPorts") or {}).get("ssh") or "").partition(",")[0]
        host = status.get("containerIp")
        if host and port:
            found.append(
                {
                    "task": label,
                    "state": str(status.get("taskState", "")).lower(),
                    "host": host,
                    "port": int(port),
                    "user": "root",
                    "command": f"ssh -p {port} root@{host}",
                }
            )
    return found
