"""Local code that goes with a job: sent to the server by content, noted in the spec."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from openpaisdk.core import Cluster
    from openpaisdk.workspace.shipping import Plan


def send_code(
    spec: dict[str, Any],
    cluster: Cluster,
    paths: Sequence[str] = (),
    *,
    required: bool = True,
    limit_mb: float | None = None,
    cwd: str | None = None,
    made: Mapping[str, bytes] | None = None,
    on_plan: Callable[[Plan], Any] | None = None,
    on_sent: Callable[[int, int], Any] | None = None,
) -> dict[str, Any] | None:
    """Send files, folders or globs (the current folder when none is named); what was sent, or None.

    Nothing is sent where the spec has its code already. Code that a cluster has no room for is an error
    where it is `required` or a command names one of its files. `made` files are sent too, in place of those
    found under their names; with them only what is named is sent. Paths are relative to `cwd`. `on_plan`
    hears what is going to be sent, `on_sent` how far it is.
    """
    if {"code", "wrapped"} & set((spec.get("extras") or {}).get("openpaisdk") or {}):
        return None
    from openpaisdk.workspace import DEFAULT_LIMIT_MB

    limit = DEFAULT_LIMIT_MB if limit_mb is None else limit_mb
    choice: dict[str, Any] = {"limit_mb": limit, "cwd": cwd}
    if not made:
        shipped = _send(spec, cluster, paths, choice, required, on_plan, on_sent)
    else:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="opai-") as folder:
            choice["instead"] = _written(made, folder)
            shipped = _send(spec, cluster, paths, choice, required, on_plan, on_sent)
    if not shipped or not shipped["manifest"]:
        return None
    note = shipped.pop("note", None) or {"manifest": shipped["manifest"]}
    spec.setdefault("extras", {}).setdefault("openpaisdk", {})["code"] = note
    return shipped


def _send(
    spec: dict[str, Any],
    cluster: Cluster,
    paths: Sequence[str],
    choice: dict[str, Any],
    required: bool,
    on_plan: Callable[[Plan], Any] | None,
    on_sent: Callable[[int, int], Any] | None,
) -> dict[str, Any] | None:
    if keeps_files(cluster):
        from openpaisdk.workspace import ship_source

        found: dict[str, Any] = ship_source(cluster, paths, on_plan=on_plan, on_sent=on_sent, **choice)
        return found
    from openpaisdk.job.elsewhere import carry_code
    from openpaisdk.workspace import plan_source

    plan = plan_source(paths, **choice)
    if plan is None:
        return None
    if on_plan is not None:
        on_plan(plan)
    needed = required or any(names_local_files(line, choice["cwd"]) for line in _commands(spec))
    return carry_code(spec, cluster, plan, required=needed, on_sent=on_sent)


def _written(made: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Contents that are in memory as files: name in the job -> path here."""
    paths = {}
    for number, (name, contents) in enumerate(made.items()):
        paths[name] = os.path.join(folder, str(number))  # noqa: PTH118
        with open(paths[name], "wb") as file:  # noqa: PTH123
            file.write(contents)
    return paths


def _commands(spec: Mapping[str, Any]) -> list[str]:
    return [line for role in spec["taskRoles"].values() for line in role["commands"]]


def keeps_files(cluster: Cluster) -> bool:
    """Whether the server takes code by content; the first answer of any server tells."""
    if cluster.config.alias == "local":
        return True
    if not cluster.extensions:
        cluster.info()
    return "files" in cluster.extensions


def names_local_files(command: str, cwd: str | None = None) -> bool:
    """Whether a word of the command is a file or folder right here, so that the job needs this folder."""
    for word in command.split():
        path = word.strip("'\";&|()").rpartition("=")[2]
        if path in ("", ".", "..") or os.path.isabs(path):  # noqa: PTH117
            continue
        if os.path.exists(os.path.join(cwd or "", path)):  # noqa: PTH110, PTH118
            return True
    return False
