"""A notebook becomes a job: executed as it is, run as a script, or opened in a Jupyter server to work in."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openpaisdk.errors import UsageError
from openpaisdk.job import Job
from openpaisdk.job.words import exports, install_lines
from openpaisdk.notebook.document import Notebook
from openpaisdk.notebook.script import script
from openpaisdk.protocol import unique_name
from openpaisdk.version import __version__

if TYPE_CHECKING:
    from openpaisdk.core import Cluster

MODES = ("batch", "script", "interactive")
ROLE = "notebook"
PORT = "jupyter"
SECRET = "jupyter"  # noqa: S105 - the name of a secret
# What people import as `openpaisdk.__install__`.
OURSELVES = f"openpaisdk=={__version__}"
_PACKAGE = re.compile(r"[A-Za-z0-9./~][^\x00-\x1f]*")

# A sentence at once instead of a shell's "not found" somewhere in the log.
NEEDS_PYTHON = (
    "command -v python3 >/dev/null || "
    "{ echo 'error: this image has no Python; choose one that has, such as python:3.11' >&2; exit 127; }"
)
NEEDS_JUPYTER = (
    "python3 -c 'import jupyterlab' 2>/dev/null || "
    "{ echo 'error: no JupyterLab in this job; add -p jupyterlab or choose an image with it' >&2; exit 126; }"
)
# On our server the way in leads through the server, so that nobody else needs to reach the port; elsewhere it
# leads through the cluster's network. The token is read from the environment: it stands on no command line,
# and Jupyter prints dots instead of one that it was given.
SERVE = """\
export JUPYTER_RUNTIME_DIR="${PAI_SDK_TASK_DIR:-$HOME}/.jupyter-runtime"
address=0.0.0.0; if [ -n "${OPAI_PAI_URI:-}" ]; then address=127.0.0.1; fi
exec python3 -m jupyterlab --no-browser --allow-root --ServerApp.ip="$address" \
--ServerApp.port="${PAI_CONTAINER_HOST_jupyter_PORT_LIST%%,*}" --ServerApp.port_retries=0 \
--ServerApp.root_dir="$PWD" --ServerApp.allow_remote_access=True"""


class NotebookJob:
    """The job made of a notebook, the files (name -> text) that go with it, and the token of its Jupyter."""

    def __init__(self, job: Job, path: Path, files: Mapping[str, str], token: str | None) -> None:
        self.job = job
        self.path = path
        self.files = files
        self.token = token

    def send(self, cluster: Cluster, sources: Iterable[str] = ()) -> None:
        """Sends the notebook, what was made of it, and the files beside it that were asked for."""
        from openpaisdk.job.code import send_code

        made = {name: text.encode() for name, text in self.files.items()}
        send_code(
            self.job.spec,
            cluster,
            [str(path) for path in sources],
            made=made,
            cwd=str(self.path.resolve().parent),
        )

    def remember(self) -> None:
        """Keeps the token of a submitted job for `opai job connect`."""
        if self.token is not None and self.job.cluster is not None:
            from openpaisdk.notebook.tokens import remember

            remember(self.job.cluster.config.alias, self.job.user or "", self.job.name, self.token)


def notebook_job(
    path: str | Path,
    *,
    mode: str = "batch",
    name: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    packages: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    vc: str | None = None,
    ports: Mapping[str, int] | None = None,
    **resources: Any,
) -> NotebookJob:
    """The job; nothing is sent yet."""
    path = Path(path)
    require_mode(mode)
    notebook = Notebook.read(path)
    notebook.require_python()
    notebook = notebook.with_parameters(parameters or {})
    job = Job(name or unique_name(path.stem))
    wanted = require_packages(packages)
    ports = {**(ports or {}), **({PORT: 1} if mode == "interactive" else {})}
    lines = commands(mode, path.name, wanted, env or {})
    job.task_role(ROLE, lines, ports=ports, **resources)
    if vc:
        job.spec["defaults"] = {"virtualCluster": vc}
    extras = job.spec.setdefault("extras", {})
    extras["submitFrom"] = "openpaisdk"
    ours = extras.setdefault("openpaisdk", {})
    ours["notebook"] = {"file": path.name, "mode": mode, "packages": wanted, "env": dict(env or {})}
    token = None
    if mode == "interactive":
        token = secrets.token_urlsafe(24)
        ours["kind"] = "interactive"
        job.secret(SECRET, token)
    files = {path.name: notebook.text()}
    if mode == "script":
        files[f"{path.stem}.py"] = script(notebook)
    return NotebookJob(job, path, files, token)


def require_mode(mode: str) -> None:
    if mode not in MODES:
        raise UsageError(f"mode {mode!r}: unknown", hint=f"one of {', '.join(MODES)}")


def require_packages(packages: Iterable[str]) -> list[str]:
    """What pip is to install. Our own package needs no pip: what a notebook uses of it is in every job."""
    wanted = [str(package).strip() for package in packages]
    for package in wanted:
        if not _PACKAGE.fullmatch(package):
            raise UsageError(
                f"{package!r} is not a package that pip takes", hint="write it as numpy or 'numpy>=1.20'"
            )
    return [package for package in wanted if package != OURSELVES]


def commands(mode: str, file: str, packages: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """What the job runs, in its working folder."""
    before = [NEEDS_PYTHON, *exports(env), *install_lines(packages)]
    if mode == "interactive":
        return [*before, NEEDS_JUPYTER, f"export JUPYTER_TOKEN='<% $secrets.{SECRET} %>'", SERVE]
    if mode == "script":
        file = f"{Path(file).stem}.py"
    return [*before, f"python3 -m openpai.runtime.notebook_run {shlex.quote(file)}"]
