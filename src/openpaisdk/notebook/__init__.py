"""From notebook to job: submit the notebook you are working in, or any other, to where the GPUs are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openpaisdk.notebook.progress import JobLink, watch

if TYPE_CHECKING:
    from openpaisdk.core import Cluster

__all__ = ["JobLink", "submit_notebook", "watch"]


def submit_notebook(
    path: str | Path | None = None,
    *,
    image: str | None = None,
    pip_requirements: Iterable[str] = (),
    mode: str = "batch",
    parameters: Mapping[str, Any] | None = None,
    name: str | None = None,
    gpu: int | None = None,
    cpu: int | None = None,
    mem: int | None = None,
    vc: str | None = None,
    env: Mapping[str, str] | None = None,
    sources: Iterable[str | Path] = (),
    cluster: Cluster | str | None = None,
) -> JobLink | None:
    """Submit the running notebook, or the one at `path`, and return the job's link at once.

    Inside a job it does nothing and returns None, so that one copy of the notebook serves both places.

    `mode` is `batch` (the executed notebook and a page of HTML come back as outputs), `script` (run as plain
    Python; the job needs no Jupyter) or `interactive` (a Jupyter server in the job; `opai job connect` opens
    it). `parameters` go into a cell after the one tagged `parameters`. `sources` are files beside the
    notebook that it needs; `"."` sends the whole folder. `mem` is in MB.
    """
    from openpaisdk.core import in_job_container

    if in_job_container():
        return None
    from openpaisdk.job import open_cluster
    from openpaisdk.notebook.readiness import require_ready
    from openpaisdk.notebook.running import find_notebook, save_running
    from openpaisdk.notebook.submission import notebook_job, require_mode

    require_mode(mode)
    found = find_notebook(path)
    if path is None:
        save_running(found)
    wanted = list(pip_requirements)
    made = notebook_job(
        found,
        mode=mode,
        name=name,
        parameters=parameters,
        packages=wanted,
        env=env,
        vc=vc,
        image=image,
        gpu=gpu,
        cpu=cpu,
        mem=mem,
    )
    opened = open_cluster(cluster)
    require_ready(made.job, mode, wanted, opened)
    made.send(opened, map(str, sources))
    made.job.submit(opened)
    made.remember()
    return JobLink(made.job)
