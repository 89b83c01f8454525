"""What a job left behind: `<workspace>/jobs/<job>/output` on the cluster's storage."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from openpaisdk.storage.contract import Entry, Storage
    from openpaisdk.storage.trees import Progress


def last_job(cluster: Any) -> str:
    """The name of my newest job."""
    found = cluster.jobs(limit=1)
    if not found:
        raise NotFoundError("you have no jobs on this cluster", hint="submit one: opai job sub -- COMMAND")
    return str(found[0]["name"])


def output_folder(cluster: Any, job: str) -> tuple[Storage, str]:
    """The storage and the path of a job's output; the job may be `user~name`."""
    from openpaisdk.storage import open_storage, workspace_of

    owner, tilde, name = job.rpartition("~")
    workspace = workspace_of(cluster)
    mine = f"/user/{cluster.user}"
    if tilde and owner != cluster.user and workspace == mine:
        workspace = f"/user/{owner}"
    store, path = open_storage(workspace, cluster)
    return store, f"{path.rstrip('/')}/jobs/{name}/output"


def list_outputs(cluster: Any, job: str) -> list[tuple[str, Entry]]:
    """Files of a job's output with their names in it; a job that is not there is an error."""
    from openpaisdk.storage.trees import remote_files

    store, folder = output_folder(cluster, job)
    found = sorted(remote_files(store, folder), key=lambda item: item[0])
    if not found:
        cluster.job(job)
    return found


def download_outputs(
    cluster: Any,
    job: str,
    names: Sequence[str] = (),
    to: str | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Copy files, folders or patterns of a job's output (all when none is named) to a folder here."""
    from openpaisdk.storage import download

    store, folder = output_folder(cluster, job)
    known = [name for name, _ in list_outputs(cluster, job)]
    wanted = _chosen(known, names, job)
    target = to or job.rpartition("~")[2]
    if not wanted:
        return {"job": job, "to": target, "files": 0, "bytes": 0, "skipped": 0, "copied": 0}
    outcome = download(
        store, folder, target, overwrite=overwrite, progress=progress, only=wanted.__contains__
    )
    return {"job": job, "to": target, **outcome}


def _chosen(known: Sequence[str], names: Sequence[str], job: str) -> set[str]:
    if not names:
        return set(known)
    from fnmatch import fnmatchcase

    found: set[str] = set()
    for text in names:
        name = text.strip("/")
        fitting = {
            item for item in known if item == name or item.startswith(name + "/") or fnmatchcase(item, name)
        }
        if not fitting:
            from openpaisdk.config import nearest

            near = nearest(name, known)
            hint = f"did you mean `{near}`?" if near else f"opai output list -j {job} shows what there is"
            raise NotFoundError(f"job {job} left no output {text!r}", hint=hint)
        found |= fitting
    return found


def task_script(cluster: Any, job: str, role: str | None = None) -> str:
    """The script that a task of the job was given; secrets stay hidden."""
    from openpaisdk.protocol import entry_script

    spec = cluster.job_config(job)
    roles = list(spec.get("taskRoles") or {})
    if role is None and len(roles) > 1:
        raise UsageError(f"job {job} has several task roles", hint=f"name one with -t: {', '.join(roles)}")
    if role is not None and role not in roles:
        raise NotFoundError(f"job {job} has no task role {role!r}", hint=f"it has: {', '.join(roles)}")
    return str(entry_script(spec, role or roles[0]))
