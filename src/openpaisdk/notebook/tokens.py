"""The Jupyter tokens of interactive jobs, in one 0600 file; the job's config only has a mask."""

from __future__ import annotations

from typing import Any

from openpaisdk.config import home, read_json, update_json

KEPT = 200


def remember(alias: str, user: str, job: str, token: str) -> None:
    def add(known: dict[str, Any] | None) -> dict[str, Any]:
        added = {**(known or {}), f"{alias}/{user}~{job}": token}
        # The oldest go first: a finished job needs its token no more.
        return dict(list(added.items())[-KEPT:])

    update_json(home() / "jupyter-tokens.json", add)


def recall(alias: str, user: str, job: str) -> str | None:
    found = (read_json(home() / "jupyter-tokens.json") or {}).get(f"{alias}/{user}~{job}")
    return str(found) if found else None
