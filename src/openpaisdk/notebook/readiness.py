"""Whether a notebook job can work at all, told before it is queued where that can be known."""

from __future__ import annotations

import subprocess
from shutil import which
from typing import TYPE_CHECKING

from openpaisdk.errors import UsageError

if TYPE_CHECKING:
    from openpaisdk.core import Cluster
    from openpaisdk.job import Job

# Mode -> what the job's Python must be able to import.
NEEDED = {"batch": ("nbclient", "ipykernel"), "script": (), "interactive": ("jupyterlab",)}
LOOK = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec(n) is None])"


def require_ready(job: Job, mode: str, packages: list[str], cluster: Cluster) -> None:
    """On this machine the job runs with the Python found here, so that Python can be asked.

    Nothing is known of images, of other machines, and of a Python that gets packages in the job.
    """
    if packages or cluster.config.alias != "local" or not _runs_as_process(job):
        return
    python = which("python3")
    if python is None:
        raise UsageError(
            "a notebook job needs Python, and there is no python3 on the PATH",
            hint="activate an environment that has it, or name an image with -i",
        )
    missing = _missing(python, NEEDED[mode])
    if missing:
        wanted = " ".join(f"-p {name}" for name in missing)
        other = ", or submit with --mode script" if mode == "batch" else ""
        raise UsageError(
            f"the job would run with {python}, which lacks {' and '.join(missing)}",
            hint=f"install them there, add {wanted}{other}",
        )


def _runs_as_process(job: Job) -> bool:
    """Whether the embedded cluster runs it without a container: no image is asked for, or none is used."""
    from openpaisdk.config import read_json
    from openpaisdk.local import state_file

    ours = (job.spec.get("extras") or {}).get("openpaisdk") or {}
    state = read_json(state_file())
    return ours.get("image") == "default" or (isinstance(state, dict) and state.get("launcher") == "process")


def _missing(python: str, names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    try:
        done = subprocess.run(
            [python, "-c", LOOK, *names], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split() if done.returncode == 0 else []
