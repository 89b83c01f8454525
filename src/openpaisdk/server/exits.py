"""From the raw exit of a task to the exit code people see, with the evidence found in its logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from openpaisdk.launchers import Exit
from openpaisdk.protocol import Classified, classify_exit, exit_spec

OOM_KILLED = -1200
UNCLASSIFIED = 255
TAIL_BYTES = 10 * 1024 * 1024
MESSAGE_BYTES = 4096
MATCH_BYTES = 2048
USER_LINES = 15
PLATFORM_LINES = 10


class Verdict(NamedTuple):
    """The exit code of a task attempt and what is stored about how it ended."""

    code: int
    outcome: dict[str, Any]


def judge(exit_: Exit, logs: dict[str, Path | None]) -> Verdict:
    """Classify an exit; reads up to 10 MiB of each log, so call it in a thread."""
    if exit_.code == 0 and not exit_.oom:
        return Verdict(0, {})
    stdout, stderr, platform = (tail(logs.get(name)) for name in ("stdout", "stderr", "runtime.log"))
    if exit_.oom:
        found = Classified(OOM_KILLED, "the task used more memory than it asked for")
    else:
        found = classify_exit(exit_.code, stdout + b"\n" + stderr, platform)
    code = found.code
    runtime: dict[str, Any] = {"exitCode": code, "originUserExitCode": exit_.code}
    if found.trigger:
        runtime["trigger"] = found.trigger
    if found.matched:
        runtime["matchedUserLogString"] = _cut(found.matched, MATCH_BYTES)
    runtime["errorLogs"] = _error_logs(
        stderr.strip() or stdout, platform, room=MESSAGE_BYTES - len(str(runtime))
    )
    runtime["name"] = "app"
    return Verdict(code, {"code": code, "runtime": runtime, "diagnostics": diagnose(code, exit_)})


def diagnose(code: int, exit_: Exit) -> str:
    """The text of `appExitDiagnostics`."""
    spec = exit_spec(code)
    lines = ["PodPattern matched:", "containers:", "- name: app", f"  code: {code}"]
    if spec:
        lines.append(f"  reason: {spec.phrase}")
    if exit_.signal:
        lines.append(f"  signal: {exit_.signal}")
    if exit_.oom:
        lines.append("  message: out of memory")
    return "\n".join(lines) + "\n"


def tail(path: Path | None, limit: int = TAIL_BYTES) -> bytes:
    """The last bytes of a log; empty where there is none."""
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            return file.read(limit)
    except OSError:
        return b""


def _error_logs(user: bytes, platform: bytes, *, room: int) -> dict[str, str]:
    """The last lines of both logs; where they do not fit, the platform's go first."""
    user_text = _cut_front(_last_lines(user, USER_LINES), max(0, room))
    left = max(0, room - len(user_text.encode()))
    return {"user": user_text, "platform": _cut_front(_last_lines(platform, PLATFORM_LINES), left)}


def _last_lines(text: bytes, count: int) -> str:
    lines = text[-64 * 1024 :].decode(errors="replace").strip().splitlines()[-count:]
    return "\n".join(lines).replace("\x00", "")


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


def _cut_front(text: str, size: int) -> str:
    data = text.encode()
    return data[len(data) - size :].decode(errors="ignore") if size < len(data) else text
