"""Local code that goes with a job: sent to the server by content, noted in the spec."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from openpaisdk.core import Cluster


def send_code(
    spec: dict[str, Any],
    cluster: Cluster,
    paths: Sequence[str] = (),
    *,
    required: bool = True,
    limit_mb: float | None = None,
    cwd: str | None = None,
    made: Mapping[str, bytes] | None = None,
    on_sent: Callable[[int, int], Any] | None = None,
) -> dict[str, Any] | None:
    """Send files, folders or globs (the current folder when none is named); what was sent, or None.

    Nothing is sent where the spec has its code already. A cluster without a place for code is an error only
    where the code is `required`. `made` files are sent too, in place of those found under their names;
    with them only what is named is sent. Paths are relative to `cwd`.
    """
    ours = (spec.get("extras") or {}).get("openpaisdk") or {}
    if "code" in ours:
        return None
    if not keeps_files(cluster):
        if not required:
            return None
        from openpaisdk.errors import UsageError

        named = ", ".join([*(made or ()), *paths]) or "the current folder"
        raise UsageError(
            f"{named}: cluster {cluster.config.alias} has no place for code",
            hint="put the code into the image or a storage of the cluster, and submit without it",
        )
    from openpaisdk.workspace import DEFAULT_LIMIT_MB, ship_source

    limit = DEFAULT_LIMIT_MB if limit_mb is None else limit_mb
    if not made:
        shipped: dict[str, Any] = ship_source(cluster, paths, limit_mb=limit, cwd=cwd, on_sent=on_sent)
    else:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="opai-") as folder:
            instead = {}
            for number, (name, contents) in enumerate(made.items()):
                instead[name] = os.path.join(folder, str(number))  # noqa: PTH118
                with open(instead[name], "wb") as file:  # noqa: PTH123
                    file.write(contents)
            shipped = ship_source(cluster, paths, limit_mb=limit, cwd=cwd, instead=instead, on_sent=on_sent)
    if not shipped["manifest"]:
        return None
    spec.setdefault("extras", {}).setdefault("openpaisdk", {})["code"] = {"manifest": shipped["manifest"]}
    return shipped


def keeps_files(cluster: Cluster) -> bool:
    """Whether the server takes code by content; the first answer of any server tells."""
    if cluster.config.alias == "local":
        return True
    if not cluster.extensions:
        cluster.info()
    return "files" in cluster.extensions


def names_local_files(command: str) -> bool:
    """Whether a word of the command is a file or folder right here, so that the job needs this folder."""
    for word in command.split():
        path = word.strip("'\"").rpartition("=")[2]
        if path not in ("", ".", "..") and not os.path.isabs(path) and os.path.exists(path):  # noqa: PTH110, PTH117
            return True
    return False
