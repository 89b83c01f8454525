"""Why a job waits or how it ended, in words, from what a genuine OpenPAI server tells."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reason(name: str, detail: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """The state of a job explained: `job`, `state`, `text`, `hint`."""
    status = detail.get("jobStatus", {})
    state = str(status.get("state", "UNKNOWN"))
    hint = None
    if state == "FAILED":
        text, hint = _failed(status)
    elif state == "WAITING":
        text, hint = _waiting(status, events)
    elif state == "RUNNING":
        retries = status.get("retries") or 0
        text = "runs" + (f", after {retries} retries" if retries else "")
    else:
        text = {"SUCCEEDED": "succeeded", "STOPPED": "was stopped", "STOPPING": "is being stopped"}.get(
            state, f"is in state {state}"
        )
    return {"job": name, "state": state, "text": f"{name} {text}", "hint": hint}


def _waiting(status: dict[str, Any], events: list[dict[str, Any]]) -> tuple[str, str | None]:
    delay = status.get("retryDelayTime")
    if delay:
        return f"waits {delay} s before the next attempt", None
    warning = next((event for event in events if event.get("type") == "Warning"), None)
    if warning is not None:
        said = str(warning.get("message", "")).strip()
        return (
            f"waits: {warning.get('reason', 'not placed')}: {said}",
            "`opai cluster resources` shows what is free",
        )
    place = status.get("virtualCluster") or "default"
    return (
        f"waits for resources of the virtual cluster {place!r}",
        "`opai cluster resources` shows what is free",
    )


def _failed(status: dict[str, Any]) -> tuple[str, str | None]:
    code = status.get("appExitCode")
    spec = status.get("appExitSpec")
    if not isinstance(spec, dict) and isinstance(code, int):
        from openpaisdk.protocol import exit_spec

        known = exit_spec(code)
        spec = known.as_dict() if known is not None else None
    runtime = ((status.get("appExitMessages") or {}).get("runtime")) or {}
    own = runtime.get("originUserExitCode")
    text = f"failed with exit code {own if own is not None else code}"
    role = status.get("appExitTriggerTaskRoleName")
    if role:
        text += f" in {role}/{status.get('appExitTriggerTaskIndex', 0)}"
    if not isinstance(spec, dict):
        return text, None
    why = spec.get("reason") or spec.get("phrase")
    if why:
        text += f": {str(why).strip()}"
    last = ((runtime.get("errorLogs") or {}).get("user") or "").strip().splitlines()
    if last:
        text += f" (last error: {last[-1][:200]})"
    remedies = spec.get("solution") or []
    remedies = [remedies] if isinstance(remedies, str) else remedies
    return text, "; ".join(str(item).strip().rstrip(".") for item in remedies) or None
