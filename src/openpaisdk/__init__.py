"""Run deep-learning jobs where the GPUs are: a client, a command line and a cluster in the box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openpaisdk.version import __version__

if TYPE_CHECKING:
    from openpaisdk.config import __cluster_config_file__
    from openpaisdk.core import Client, Cluster, OpenPAIClient, in_job_container
    from openpaisdk.engine import Engine
    from openpaisdk.job import Job

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


def __dir__() -> list[str]:
    return sorted(__all__)
