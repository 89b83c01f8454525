"""One job's detail as lines for a person."""

from __future__ import annotations

from openpaisdk.commands.tasks import each_task
from openpaisdk.commands.wording import ago, duration, ran_for, shown_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_TASKS_SHOWN = 50


def detail_text(detail: dict[str, Any]) -> str:
    """State, times and outcome, then a line per task."""
    status = detail["jobStatus"]
    lines = [
        f"{status.get('username', '')}~{detail['name']}  {shown_state(status)}",
        f"  virtual cluster  {status.get('virtualCluster', '')}",
        f"  submitted        {ago(status.get('submissionTime') or status.get('createdTime'))}",
    ]
    if status.get("launchedTime"):
        lines.append(f"  ran              {duration(ran_for(status))}")
    if status.get("attemptId"):
        lines.append(f"  attempt          {status['attemptId']} ({status.get('retries', 0)} retries)")
    if detail.get("tags"):
        lines.append(f"  tags             {', '.join(detail['tags'])}")
    lines += _exit_lines(status)
    tasks = list(each_task(detail))
    if tasks:
        lines.append("  tasks")
        width = max(len(label) for label, _ in tasks)
        lines += [f"    {label:<{width}}  {_task_words(task)}" for label, task in tasks[:MOST_TASKS_SHOWN]]
        if len(tasks) > MOST_TASKS_SHOWN:
            lines.append(f"    and {len(tasks) - MOST_TASKS_SHOWN} more; -o json shows all")
    return "\n".join(lines)


def _exit_lines(status: dict[str, Any]) -> list[str]:
    code = status.get("appExitCode")
    if code is None:
        return []
    spec = status.get("appExitSpec") or {}
    words = spec.get("reason") or spec.get("phrase") or ""
    return [f"  exit code        {code}" + (f"  {words}" if code and words else "")]


def _task_words(task: dict[str, Any]) -> str:
    words = [str(task.get("taskState", "")).lower()]
    if task.get("containerIp"):
        words.append(f"on {task.get('containerNodeName') or task['containerIp']}")
    if task.get("containerExitCode") is not None:
        words.append(f"exit code {task['containerExitCode']}")
    if task.get("retries"):
        words.append(f"{task['retries']} retries")
    return " · ".join(words)
