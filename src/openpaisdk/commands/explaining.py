"""Words for why a job waits or failed, made from what every OpenPAI cluster tells; pure."""

from __future__ import annotations

from openpaisdk.commands.cluster_resources import amounts
from openpaisdk.commands.fitting import asked_for
from openpaisdk.commands.wording import ago, duration, memory, number, ran_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def explain(
    detail: Mapping[str, Any],
    *,
    config: Mapping[str, Any] | None = None,
    events: Any = None,
    virtual_clusters: Mapping[str, Any] | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    """`{"job", "state", "text", "hint"}` for a job in any state."""
    status = detail["jobStatus"]
    name, state = str(detail["name"]), str(status["state"])
    rows = events.get("data", ()) if isinstance(events, dict) else events or ()
    if state == "WAITING":
        text, hint = _waits(name, status, config or {}, rows, virtual_clusters or {}, now)
    elif state == "FAILED":
        text, hint = _failed(name, status)
    else:
        text, hint = _otherwise(name, state, status, now)
    return {"job": name, "state": state, "text": text, "hint": hint}


def _otherwise(name: str, state: str, status: Mapping[str, Any], now: float | None) -> tuple[str, str | None]:
    time = duration(ran_for(status, now))
    if status.get("executionType") == "STOP" and state in ("RUNNING", "STOPPING"):
        return f"{name} is being stopped.", None
    if state == "RUNNING":
        again = f" This is attempt {status['attemptId']}." if status.get("attemptId") else ""
        return f"{name} is running, for {time or 'a moment'}.{again}", f"opai job logs -f {name}"
    if state == "SUCCEEDED":
        return f"{name} succeeded" + (f" in {time}." if time else "."), None
    if state == "STOPPED":
        return f"{name} was stopped by its owner or an administrator.", f"opai job clone {name} runs it again"
    return f"{name} is {state.lower()}.", None


def _waits(
    name: str,
    status: Mapping[str, Any],
    config: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    virtual_clusters: Mapping[str, Any],
    now: float | None,
) -> tuple[str, str | None]:
    vc_name = str(status.get("virtualCluster") or "default")
    vc = virtual_clusters.get(vc_name) or {}
    free = _free(vc)
    words, never = _short_of(asked_for(config), free, amounts(vc.get("resourcesTotal")))
    since = ago(status.get("submissionTime") or status.get("createdTime"), now)
    parts = [f"{name} waits" + (f": {'; '.join(words)} in `{vc_name}`." if words else f" in `{vc_name}`.")]
    if since:
        parts.append(f"Submitted {since}.")
    if status.get("retries"):
        wait = status.get("retryDelayTime")
        parts.append(
            f"It was tried {number(status['retries'] + 1, 'time')} before"
            + (f", next in {wait} s." if wait else ".")
        )
    warning = next((event for event in events if event.get("type") == "Warning"), None)
    if warning:
        parts.append(f"The cluster says {warning.get('reason')}: {str(warning.get('message', '')).strip()}")
    if never:
        return " ".join(parts), f"it will wait for ever: {never}; stop it and ask for less"
    if not words and vc and not warning:
        parts.append("Enough is free; it should start soon, or waits for others that came first.")
    return " ".join(parts), "opai cluster resources shows what is used" if words else None


def _free(vc: Mapping[str, Any]) -> dict[str, float]:
    total, used = amounts(vc.get("resourcesTotal")), amounts(vc.get("resourcesUsed"))
    return {kind: max(0.0, total[kind] - used[kind]) for kind in total}


def _short_of(
    wanted: dict[str, float], free: dict[str, float], total: dict[str, float]
) -> tuple[list[str], str | None]:
    """What is missing now, and what the virtual cluster will never have."""
    words: list[str] = []
    never = None
    if not any(total.values()):
        return words, never
    for kind, noun in (("gpu", "GPU"), ("cpu", "CPU"), ("memory", "")):
        if wanted[kind] <= free[kind]:
            continue
        asked = number(wanted[kind], noun) if noun else memory(wanted[kind])
        left = f"{free[kind]:g}" if noun else memory(free[kind])
        words.append(f"{asked} wanted, {left} free")
        if wanted[kind] > total[kind] and never is None:
            has = number(total[kind], noun) if noun else memory(total[kind])
            never = f"the whole virtual cluster has {has}"
    return words, never


def _failed(name: str, status: Mapping[str, Any]) -> tuple[str, str | None]:
    from openpaisdk.protocol import exit_spec

    code = status.get("appExitCode")
    spec = exit_spec(code)
    messages = (status.get("appExitMessages") or {}).get("runtime") or {}
    origin = messages.get("originUserExitCode")
    role, index = status.get("appExitTriggerTaskRoleName"), status.get("appExitTriggerTaskIndex")
    where = f" in task {role}/{index}" if role is not None else ""
    shown = origin if origin is not None else code
    parts = [f"{name} failed{where} with exit code {shown}."]
    if spec is not None and spec.reason:
        parts.append(_sentence(spec.reason))
    log = ((messages.get("errorLogs") or {}).get("user") or "").strip()
    if log:
        parts.append("It last wrote:\n  " + "\n  ".join(log.splitlines()[-5:]))
    if status.get("retries"):
        parts.append(f"It was tried {number(status['retries'] + 1, 'time')}.")
    remedies = [_sentence(line) for line in (spec.solution if spec is not None else ())]
    return " ".join(parts), "\n".join([*remedies, f"opai job logs {name} shows what it printed"])


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."
