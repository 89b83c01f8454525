"""Taking in a job: its text checked, its owner's rights looked at, then stored and queued."""

from __future__ import annotations

from typing import Any

import msgspec

from openpaisdk.errors import AccessError, InvalidJobError, NotFoundError
from openpaisdk.protocol import ajv_errors, check, load, require_valid, virtual_cluster
from openpaisdk.server.auth import Caller
from openpaisdk.server.rows import JobRow


def parse_job(text: str) -> dict[str, Any]:
    """A valid job spec out of YAML or JSON text."""
    document = load(text, "job")
    problems = check(document, strict=False)
    if problems:
        schema = [
            problem for problem in problems if problem.keyword not in ("reference", "duplicate", "name")
        ]
        message = (
            msgspec.json.encode(ajv_errors(problems)).decode()
            if schema
            else "; ".join(str(problem) for problem in problems)
        )
        raise InvalidJobError(message, problems=problems)
    spec = require_valid(document, strict=False)
    for role in spec["taskRoles"].values():
        role.setdefault("instances", 1)
    return spec


async def accept(
    services: Any, caller: Caller, spec: dict[str, Any], key: str | None, *, refuse_unfit: bool
) -> JobRow:
    """Check what the caller may use, then store and queue the job.

    OpenPAI lets a job wait that can never fit, and its clients rely on that; ours asks for a refusal.
    """
    vc = virtual_cluster(spec)
    allowed = services.accounts.virtual_clusters_of(caller.name)
    if vc not in allowed:
        raise AccessError(
            f"User {caller.name} is not allowed to access virtual cluster {vc}.",
            hint=f"yours: {', '.join(allowed) or 'none; ask an administrator for one'}",
        )
    granted = services.accounts.rights(caller.name).storages
    for storage in _storages(spec):
        if storage not in granted:
            raise NotFoundError(f"Storage {storage} is not found.", code="NoStorageError")
    job: JobRow = await services.loop.submit(caller.name, spec, key=key, refuse_unfit=refuse_unfit)
    return job


def _storages(spec: dict[str, Any]) -> list[str]:
    listed = (spec.get("extras") or {}).get("storages")
    if not isinstance(listed, list):
        return []
    return [str(item["name"]) for item in listed if isinstance(item, dict) and "name" in item]
