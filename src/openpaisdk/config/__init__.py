"""Which cluster to talk to and with which defaults: flag > environment > project > user > built-in."""

from __future__ import annotations

from openpaisdk.config.clusters import (
    ClusterConfig,
    cached_token,
    cluster_file,
    from_env,
    get_cluster,
    load_clusters,
    remember_token,
    remove_cluster,
    save_cluster,
    select,
)
from openpaisdk.config.defaults import (
    KNOWN_DEFAULTS,
    add_defaults,
    known_default,
    list_defaults,
    megabytes,
    nearest,
    project_file,
    remove_default,
    setting,
    user_file,
)
from openpaisdk.config.files import home, home_path, locked, read_json, update_json, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    __cluster_config_file__: str

__all__ = [
    "KNOWN_DEFAULTS",
    "ClusterConfig",
    "__cluster_config_file__",
    "add_defaults",
    "cached_token",
    "cluster_file",
    "from_env",
    "get_cluster",
    "home",
    "home_path",
    "known_default",
    "list_defaults",
    "load_clusters",
    "locked",
    "megabytes",
    "nearest",
    "project_file",
    "read_json",
    "remember_token",
    "remove_cluster",
    "remove_default",
    "save_cluster",
    "select",
    "setting",
    "update_json",
    "user_file",
    "write_private",
]


def __getattr__(name: str) -> Any:
    if name == "__cluster_config_file__":
        return cluster_file()
    raise AttributeError(f"module 'openpaisdk.config' has no attribute {name!r}")
