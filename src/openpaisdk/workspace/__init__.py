"""Code in, results out: shipping local files with a job and finding what it left (client side)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLACES = {
    "DEFAULT_LIMIT_MB": "shipping",
    "Plan": "shipping",
    "carry_source": "carrying",
    "download_outputs": "outputs",
    "is_forbidden": "scan",
    "is_wrapped": "wrapping",
    "job_storage": "remote_code",
    "last_job": "outputs",
    "list_outputs": "outputs",
    "output_folder": "outputs",
    "packed_code": "inline",
    "plan_source": "shipping",
    "runtime_text": "bundle",
    "ship_source": "shipping",
    "show_size": "shipping",
    "task_script": "outputs",
    "wrap": "wrapping",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'openpaisdk.workspace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"openpaisdk.workspace.{_PLACES[name]}"), name)
