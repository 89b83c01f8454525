"""From notebook to job: submit the notebook you are working in, or any other, to where the GPUs are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openpaisdk.core import Cluster
    from openpaisdk.notebook.submission import NotebookJob

__all__ = ["send_notebook", "submit_notebook"]


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
    sources: Iterable[str] = (),
    cluster: Cluster | str | None = None,
) -> str | None:
    """Submit the running notebook, or the one at `path`, and return the job's link at once; inside a job it does nothing.

    `mode` is `batch` (the executed notebook and a page of HTML come back as outputs), `script` (run as plain Python)
    or `interactive` (a Jupyter server in the job; `opai job connect` opens it). `sources` are files beside the notebook.
    """
    from openpaisdk.core import in_job_container

    if in_job_container():
        return None
    from openpaisdk.notebook.running import ensure_saved, find_notebook, running_cell

    found = find_notebook(path)
    if path is None:
        ensure_saved(found, running_cell())
    sent = send_notebook(
        found,
        mode=mode,
        parameters=parameters,
        packages=[*pip_requirements],
        name=name,
        sources=sources,
        cluster=cluster,
        image=image,
        gpu=gpu,
        cpu=cpu,
        mem=mem,
    )
    return sent.job.link


def send_notebook(
    path: Path,
    *,
    mode: str = "batch",
    parameters: Mapping[str, Any] | None = None,
    packages: Iterable[str] = (),
    name: str | None = None,
    sources: Iterable[str] = (),
    cluster: Cluster | str | None = None,
    **resources: Any,
) -> NotebookJob:
    """Make the job, send the files and submit it."""
    from openpaisdk.job import open_cluster
    from openpaisdk.notebook.submission import notebook_job, ship

    made, files = notebook_job(path, mode=mode, name=name, parameters=parameters, packages=packages, **resources)
    opened = open_cluster(cluster)
    ship(made, files, path, opened, sources)
    made.job.submit(opened)
    if made.token is not None:
        from openpaisdk.notebook.tokens import remember

        remember(opened.alias, made.job.user or "", made.job.name, made.token)
    return made
