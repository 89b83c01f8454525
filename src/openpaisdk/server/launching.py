"""From stored tasks to what a launcher starts: script, variables, folders and code of each task attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openpaisdk.launchers import TaskSpec
from openpaisdk.launchers.folder import write_plain
from openpaisdk.protocol import image_uri, normalise_role, render_auth
from openpaisdk.server import environment
from openpaisdk.server.environment import Identity, Peer
from openpaisdk.server.rows import AttemptRow, JobRow, TaskRow
from openpaisdk.server.runtime_files import runtime_folder
from openpaisdk.server.scripts import scripts_of
from openpaisdk.server.settings import GRACE_SECONDS, Settings

DEFAULT_SHM_MB = 512
# What our client tells of the shell that a job was submitted from, so that it finds the same Python.
SUBMITTED_FROM = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")


def task_key(job: JobRow, attempt: int, role: str, index: int, task_attempt: int) -> str:
    """The name of a task attempt towards the launcher, unlike that of any other server on the machine."""
    return f"{job.uid[:13]}-{attempt}-{role}-{index}-{task_attempt}"


def build(
    settings: Settings,
    job: JobRow,
    attempt: AttemptRow,
    spec: Mapping[str, Any],
    *,
    tasks: Sequence[TaskRow],
    wanted: Sequence[tuple[str, int]],
    uri: str,
    token: str,
) -> list[TaskSpec]:
    """The gang `wanted` ((role, index) pairs); `tasks` are all tasks of the attempt, for their addresses."""
    written = {normalise_role(name): name for name in spec["taskRoles"]}
    by_key = {(task.role, task.idx): task for task in tasks}
    peers = {key: _peer(task) for key, task in by_key.items()}
    ordered = [peers[key] for role in written for key in peers if key[0] == role]
    shared = {
        **environment.job_variables(spec, user=job.user, job=job.name, vc=job.vc),
        **environment.peer_variables(ordered),
    }
    folder = settings.job_folder(job.user, job.name)
    scripts = {
        name: scripts_of(spec, name, callbacks=uses_callbacks(spec)).entry for name in written.values()
    }
    runtime = None if sdk_extras(spec).get("runtime") is False else str(runtime_folder(settings.data_dir))
    host = submitted_from(settings, spec)
    built: list[TaskSpec] = []
    for key in wanted:
        task = by_key[key]
        role = written[task.role]
        place = settings.task_folder(job.id, attempt.attempt, task.role, task.idx, task.task_attempt)
        who = Identity(
            *(job.user, job.name, job.debug_id, job.uid, attempt.attempt, attempt.uid),
            *(role, task.idx, task.task_attempt, task.uid, task.attempt_uid or ""),
        )
        gpus = tuple(int(number) for number in task.gpus.split(",") if number)
        resources = spec["taskRoles"][role]["resourcePerInstance"]
        options = spec["taskRoles"][role].get("extraContainerOptions") or {}
        built.append(
            TaskSpec(
                key=task_key(job, attempt.attempt, task.role, task.idx, task.task_attempt),
                folder=str(place),
                script=scripts[role],
                env={
                    **shared,
                    **environment.task_variables(who, own=peers[key], gpus=gpus, workdir=str(place / "work")),
                    **environment.sdk_variables(
                        workspace=str(folder),
                        output=str(folder / "output"),
                        task_dir=str(place),
                        uri=uri,
                        user=job.user,
                        token=token,
                        tls=settings.tls_cert is not None,
                        grace=GRACE_SECONDS,
                        kind=str(sdk_extras(spec).get("kind") or ""),
                    ),
                },
                host_env=host,
                prepend={"PYTHONPATH": runtime} if runtime else {},
                cpu=resources["cpu"],
                memory_mb=resources["memoryMB"],
                gpus=gpus,
                shm_mb=options.get("shmMB") or DEFAULT_SHM_MB,
                image=_image(spec, role),
                auth=render_auth(spec, role),
                mounts=(
                    (str(folder), str(folder), False),
                    *(((runtime, runtime, True),) if runtime else ()),
                ),
            )
        )
    return built


def sdk_extras(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """What our client left for us in the job spec."""
    found = (spec.get("extras") or {}).get("openpaisdk")
    return found if isinstance(found, Mapping) else {}


def submitted_from(settings: Settings, spec: Mapping[str, Any]) -> dict[str, str]:
    """The submitter's PATH and Python environment, which mean something only on the same person's machine."""
    found = sdk_extras(spec).get("environment")
    if not settings.local or not isinstance(found, Mapping) or not isinstance(found.get("PATH"), str):
        return {}
    return {name: str(found.get(name) or "").replace("\0", "") for name in SUBMITTED_FROM}


def uses_callbacks(spec: Mapping[str, Any]) -> bool:
    """Whether the program itself sees to the deployment's commands, through the runtime."""
    return sdk_extras(spec).get("callbacks") is True


def code_manifest(spec: Mapping[str, Any]) -> str | None:
    """The code that was sent along with the job."""
    code = sdk_extras(spec).get("code")
    found = code.get("manifest") if isinstance(code, Mapping) else None
    return found if isinstance(found, str) else None


def prepare_folders(
    settings: Settings, job: JobRow, spec: Mapping[str, Any], gang: Sequence[TaskSpec]
) -> None:
    """Make the job's own folders and lay its code into each task's working directory. May be repeated."""
    home = settings.job_folder(job.user, job.name)
    for name in ("code", "output"):
        (home / name).mkdir(parents=True, exist_ok=True)
    if uses_callbacks(spec):
        _lay_scripts(spec, gang)
    manifest = code_manifest(spec)
    if manifest is None:
        return
    from openpaisdk.server.files.blobs import lay_out

    for task in gang:
        if not (Path(task.folder) / "started.json").exists():
            Path(task.folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            lay_out(settings.files, manifest, Path(task.folder) / "work", user=job.user)


def _lay_scripts(spec: Mapping[str, Any], gang: Sequence[TaskSpec]) -> None:
    for task in gang:
        scripts = scripts_of(spec, task.env["PAI_CURRENT_TASK_ROLE_NAME"], callbacks=True)
        Path(task.folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in (("pre.sh", scripts.pre), ("post.sh", scripts.post)):
            if text and not (Path(task.folder) / "started.json").exists():
                write_plain(f"{task.folder}/{name}", text.encode("utf-8", "surrogateescape"), 0o600)


def _image(spec: Mapping[str, Any], role: str) -> str | None:
    """The image that was asked for; one that our client filled in by default was not."""
    return None if sdk_extras(spec).get("image") == "default" else image_uri(spec, role)


def _peer(task: TaskRow) -> Peer:
    ports = {label: [int(n) for n in text.split(",") if n] for label, text in json.loads(task.ports).items()}
    return Peer(task.role, task.idx, task.ip or "", ports)
