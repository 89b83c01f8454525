"""Run deep-learning jobs where the GPUs are: a client, a command line and a cluster in the box."""

from __future__ import annotations

from openpaisdk.version import __version__

# `typing` would cost as much as everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.config import __cluster_config_file__
    from openpaisdk.core import Client, Cluster, OpenPAIClient, in_job_container
    from openpaisdk.engine import Engine
    from openpaisdk.job import Job
    from openpaisdk.notebook import submit_notebook

__all__ = [
    "Client",
    "Cluster",
    "Engine",
    "Job",
    "OpenPAIClient",
    "__cluster_config_file__",
    "__install__",
    "__version__",
    "in_job_container",
    "submit_notebook",
]

__install__ = f"openpaisdk=={__version__}"

# Public name -> module that has it; loaded on first use so that `import openpaisdk` stays cheap.
_HOMES = {
    "Client": "openpaisdk.core",
    "Cluster": "openpaisdk.core",
    "OpenPAIClient": "openpaisdk.core",
    "in_job_container": "openpaisdk.core",
    "Engine": "openpaisdk.engine",
    "Job": "openpaisdk.job",
    "submit_notebook": "openpaisdk.notebook",
    "__cluster_config_file__": "openpaisdk.config",
}


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'openpaisdk' has no attribute {name!r}") from None
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext openpaisdk` in a notebook: the magics `%opai` and `%%only`."""
    from importlib import import_module

    import_module("openpaisdk.cli.magics").load(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
