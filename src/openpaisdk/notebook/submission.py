"""A notebook becomes a job: executed as it is (`batch`), as a script, or as a Jupyter server to work in (`interactive`)."""

from __future__ import annotations

import secrets
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openpaisdk.errors import UsageError
from openpaisdk.job import Job
from openpaisdk.job.words import install_lines
from openpaisdk.notebook.document import Notebook
from openpaisdk.protocol import unique_name

if TYPE_CHECKING:
    from openpaisdk.core import Cluster

MODES = ("batch", "script", "interactive")
ROLE = "notebook"
PORT = "jupyter"

# A sentence at once instead of a shell's "not found" somewhere in the log.
NEEDS_PYTHON = (
    "command -v python3 >/dev/null || "
    "{ echo 'error: this image has no Python; choose one that has, such as python:3.11' >&2; exit 127; }"
)


class NotebookJob:
    """The job made of one notebook, and the folder with what has to be sent along."""

    def __init__(self, job: Job, mode: str, token: str | None) -> None:
        self.job = job
        self.mode = mode
        self.token = token


def notebook_job(
    path: Path,
    *,
    mode: str = "batch",
    name: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    packages: Iterable[str] = (),
    **resources: Any,
) -> tuple[NotebookJob, dict[str, str]]:
    """The job, and the files (name -> text) that stand in for the notebook among what is sent."""
    if mode not in MODES:
        raise UsageError(f"--mode {mode}: unknown", hint=f"one of {', '.join(MODES)}")
    notebook = Notebook.read(path)
    notebook.require_python()
    notebook = notebook.with_parameters(dict(parameters or {}))
    stem = path.stem
    token = secrets.token_urlsafe(24) if mode == "interactive" else None
    commands = [NEEDS_PYTHON, *install_lines(packages), *_commands(mode, path.name)]
    job = Job(name or unique_name(stem))
    ports = {PORT: 1} if mode == "interactive" else None
    job.task_role(ROLE, commands, ports=ports, **resources)
    ours = job.spec.setdefault("extras", {}).setdefault("openpaisdk", {})
    ours["notebook"] = {"file": path.name, "mode": mode}
    job.spec["extras"]["submitFrom"] = "openpaisdk"
    if token is not None:
        ours["kind"] = "interactive"
        job.secret("jupyter", token)
    files = {path.name: notebook.text()}
    if mode == "script":
        files[stem + ".py"] = notebook.script()
    return NotebookJob(job, mode, token), files


def _commands(mode: str, file: str) -> list[str]:
    quoted = shlex.quote(file)
    if mode == "batch":
        return [f'python3 -m openpai.runtime.notebook_run {quoted} "$PAI_SDK_JOB_OUTPUT_DIR"']
    if mode == "script":
        return [f"python3 {shlex.quote(Path(file).stem + '.py')}"]
    return [
        # The token is read from the environment so that it stands on no command line.
        "export JUPYTER_TOKEN='<% $secrets.jupyter %>'",
        "python3 -c 'import jupyterlab' 2>/dev/null || python3 -c 'import jupyter_server' || "
        "{ echo 'error: this image has no Jupyter; add -p jupyterlab or choose an image with it' >&2; exit 126; }",
        "exec python3 -m jupyter lab --no-browser --allow-root --ServerApp.ip=$PAI_CONTAINER_HOST_IP "
        "--ServerApp.port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST --ServerApp.port_retries=0 "
        "--ServerApp.root_dir=$PWD --ServerApp.allow_remote_access=True",
    ]


def ship(notebook: NotebookJob, files: Mapping[str, str], path: Path, cluster: Cluster, sources: Iterable[str]) -> dict[str, Any]:
    """Sends the notebook, what was made of it, and the files beside it that were asked for."""
    from openpaisdk import workspace

    with tempfile.TemporaryDirectory(prefix="opai-notebook-") as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        shipped: dict[str, Any] = workspace.ship_source(
            cluster, [str(source) for source in sources], extra={name: Path(folder, name) for name in files}
        )
    return shipped
