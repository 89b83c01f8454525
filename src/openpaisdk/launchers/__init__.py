"""Launchers by name; each is imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from openpaisdk.errors import ConfigError
from openpaisdk.launchers.contract import (
    Capacity,
    ExecPlan,
    Exit,
    Launcher,
    LaunchError,
    Node,
    Observation,
    TaskSpec,
)

__all__ = [
    "LAUNCHERS",
    "Capacity",
    "ExecPlan",
    "Exit",
    "LaunchError",
    "Launcher",
    "Node",
    "Observation",
    "TaskSpec",
    "default_launcher",
]

LAUNCHERS = {
    "auto": "openpaisdk.launchers.auto:AutoLauncher",
    "container": "openpaisdk.launchers.container:ContainerLauncher",
    "process": "openpaisdk.launchers.process:ProcessLauncher",
}


def default_launcher(name: str = "auto", **options: Any) -> Launcher:
    """The launcher called `name`; `options` are those of its class (`fake_gpus`, `engine`, ...)."""
    try:
        module, _, attribute = LAUNCHERS[name].partition(":")
    except KeyError:
        raise ConfigError(
            f"launcher: no launcher is called {name!r}", hint=f"choose one of {', '.join(sorted(LAUNCHERS))}"
        ) from None
    made: Launcher = getattr(import_module(module), attribute)(**options)
    return made
