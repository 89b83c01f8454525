"""How a job ended, as data and as an error."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


class Outcome(dict[str, "Any"]):
    """`name`, `user`, `state`, `exitCode` (the program's own where the cluster tells it) and `seconds`."""

    reason: str | None

    @property
    def name(self) -> str:
        return str(self["name"])

    @property
    def state(self) -> str:
        return str(self["state"])

    @property
    def exit_code(self) -> int | None:
        code: int | None = self["exitCode"]
        return code


def outcome(detail: Mapping[str, Any]) -> Outcome:
    """The outcome in a job detail."""
    status = detail["jobStatus"]
    runtime = (status.get("appExitMessages") or {}).get("runtime") or {}
    spec = status.get("appExitSpec") or {}
    begun = status.get("launchedTime") or status.get("createdTime") or status.get("submissionTime")
    ended = status.get("completedTime")
    found = Outcome(
        name=str(detail.get("name", "")),
        user=str(status.get("username", "")),
        state=str(status["state"]),
        exitCode=runtime.get("originUserExitCode", status.get("appExitCode")),
        seconds=(ended - begun) / 1000 if begun and ended else None,
    )
    found.reason = spec.get("reason") or spec.get("phrase")
    return found


def failure(found: Outcome) -> Exception | None:
    """The error that a job's end amounts to; None for success."""
    if found.state == "SUCCEEDED":
        return None
    from openpaisdk.errors import JobFailedError, JobStoppedError

    if found.state == "STOPPED":
        return JobStoppedError(f"job {found.name} was stopped")
    why = f": {found.reason}" if found.reason else ""
    return JobFailedError(
        f"job {found.name} failed with exit code {found.exit_code}{why}", hint=f"opai job why {found.name}"
    )
