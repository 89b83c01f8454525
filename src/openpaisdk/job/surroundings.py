"""What a job takes along from the shell that it is submitted from, on the machine of the same person."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from openpaisdk.core import Cluster

NAMES = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")


def with_surroundings(
    spec: Mapping[str, Any], cluster: Cluster, environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """The spec as it is sent: to the embedded cluster with the search path and Python in force here.

    The embedded server may have been started from another environment than the one in which people type now.
    Elsewhere these folders mean nothing, and what an earlier submission left is taken out.
    """
    extras = dict(spec.get("extras") or {})
    ours = dict(extras.get("openpaisdk") or {})
    ours.pop("environment", None)
    if cluster.config.alias == "local":
        ours["environment"] = {name: environ[name] for name in NAMES if environ.get(name)}
    elif "environment" not in (extras.get("openpaisdk") or {}):
        return dict(spec)
    extras["openpaisdk"] = ours
    return {**spec, "extras": extras}
