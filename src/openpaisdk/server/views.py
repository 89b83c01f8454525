"""Stored rows as the JSON of OpenPAI's REST API: field names, null and absent keys as its clients expect."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

import msgspec

from openpaisdk.protocol import exit_spec
from openpaisdk.scheduler.transitions import shown_states
from openpaisdk.server.listing import NO_CLASS
from openpaisdk.server.rows import AttemptRow, EventRow, JobRow, TaskRow

NULL = msgspec.Raw(b"null")


@lru_cache(maxsize=1024)
def _exit_spec(code: int | None) -> msgspec.Raw:
    found = exit_spec(code)
    return msgspec.Raw(msgspec.json.encode(found.as_dict())) if found else NULL


def list_row(job: JobRow) -> dict[str, Any]:
    """One row of the job list."""
    return {
        "debugId": job.debug_id,
        "name": job.name,
        "username": job.user,
        "state": job.state,
        "subState": job.sub_state,
        "executionType": job.execution_type,
        "tags": json.loads(job.tags) if job.tags != "[]" else [],
        "retries": job.retries,
        "retryDetails": _retry_details(job),
        "retryDelayTime": _seconds(job.retry_delay),
        "submissionTime": job.submitted,
        "createdTime": job.created,
        "launchedTime": job.launched or job.completed,
        "completedTime": job.completed,
        "appExitCode": job.exit_code,
        "virtualCluster": job.vc,
        "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.tasks,
        "totalTaskRoleNumber": job.roles,
        "jobPriority": None if job.priority == NO_CLASS else job.priority,
    }


def _retry_details(job: JobRow) -> dict[str, int]:
    return {"user": job.user_retries, "platform": job.retries - job.user_retries, "resource": 0}


def _seconds(delay: float | None) -> int | None:
    return None if delay is None else round(delay)


def outcome_of(text: str | None) -> dict[str, Any]:
    """How an attempt ended, as the loop stored it."""
    return msgspec.json.decode(text) if text else {}


def exit_messages(outcome: dict[str, Any]) -> dict[str, Any] | None:
    if not outcome:
        return None
    return {"container": None, "runtime": outcome.get("runtime"), "launcher": outcome.get("launcher")}


def _exit_type(code: int | None) -> str | None:
    if code is None:
        return None
    return "Succeeded" if code == 0 else "Failed"


def detail(job: JobRow, attempt: AttemptRow | None, tasks: list[TaskRow]) -> dict[str, Any]:
    """A job as it stands in one of its attempts; before the first, keys about it are absent, not null.

    A job that is back in the queue after a failed attempt still shows that attempt: its exit and its logs.
    """
    shown: dict[str, Any] = {
        "username": job.user,
        "state": job.state,
        "subState": job.sub_state,
        "executionType": job.execution_type,
        "retries": job.retries,
        "retryDetails": _retry_details(job),
        "retryDelayTime": _seconds(job.retry_delay),
        "submissionTime": job.submitted,
        "createdTime": job.created,
        "launchedTime": job.launched or job.completed,
        "completedTime": job.completed,
        "virtualCluster": job.vc,
    }
    if attempt is not None:
        shown["attemptId"] = attempt.attempt
        shown["appId"] = f"{attempt.attempt}_{attempt.uid}"
    code = attempt.exit_code if attempt else job.exit_code
    outcome = outcome_of(attempt.outcome) if attempt else {}
    sub_state = attempt.sub_state if attempt else job.sub_state
    shown |= {
        "attemptState": shown_states(sub_state, code)[1],
        "appProgress": 1 if (attempt.completed if attempt else job.completed) else 0,
        "appTrackingUrl": "",
        "appCreatedTime": attempt.created if attempt else None,
        "appLaunchedTime": (attempt.launched or attempt.completed) if attempt else None,
        "appCompletedTime": attempt.completed if attempt else None,
        "appExitCode": code,
        "appExitSpec": _exit_spec(code),
        "appExitDiagnostics": outcome.get("diagnostics"),
        "appExitMessages": exit_messages(outcome),
        "appExitTriggerMessage": outcome.get("trigger"),
        "appExitTriggerTaskRoleName": outcome.get("triggerRole"),
        "appExitTriggerTaskIndex": outcome.get("triggerIndex"),
        "appExitType": _exit_type(code),
    }
    roles = _by_role(job, tasks) if attempt else {}
    return {
        "debugId": job.debug_id,
        "name": job.name,
        "tags": json.loads(job.tags),
        "jobStatus": shown,
        "taskRoles": {
            role: {
                "taskRoleStatus": {"name": role},
                "taskStatuses": [_task(job.path, attempt.attempt, task) for task in found],  # type: ignore[union-attr]
            }
            for role, found in roles.items()
        },
    }


def _by_role(job: JobRow, tasks: Iterable[TaskRow]) -> dict[str, list[TaskRow]]:
    """Tasks grouped by role, roles in the order of the job spec."""
    roles: dict[str, list[TaskRow]] = {name: [] for name in job.role_names.split(",")}
    for task in tasks:
        roles.setdefault(task.role, []).append(task)
    return {name: found for name, found in roles.items() if found}


def log_path(job_path: str, attempt: int, task: TaskRow) -> str:
    """Where the logs of a task attempt are listed."""
    return (
        f"/api/v2/jobs/{job_path}/attempts/{attempt}/taskRoles/{task.role}/taskIndex/{task.idx}"
        f"/attempts/{task.task_attempt}/logs"
    )


def _task(job_path: str, attempt: int, task: TaskRow) -> dict[str, Any]:
    return {
        "taskIndex": task.idx,
        "taskUid": task.uid,
        "taskState": shown_states(task.sub_state, task.exit_code)[0],
        **_container(job_path, attempt, task, code=task.exit_code),
        "retries": task.retries,
        "accountableRetries": task.user_retries,
        "createdTime": task.created,
        "launchedTime": task.launched or task.completed,
        "completedTime": task.completed,
        "attemptId": task.task_attempt,
        **_attempt_times(task),
    }


def _container(job_path: str, attempt: int, task: TaskRow, *, code: int | None) -> dict[str, Any]:
    return {
        "containerId": task.attempt_uid,
        "containerIp": task.ip,
        "containerNodeName": task.node,
        "containerPorts": msgspec.Raw(task.ports.encode()),
        "containerGpus": task.gpus or None,
        "containerLog": log_path(job_path, attempt, task),
        "containerExitCode": code,
        "containerExitSpec": _exit_spec(code),
        "containerExitDiagnostics": outcome_of(task.outcome).get("diagnostics"),
    }


def _attempt_times(task: TaskRow) -> dict[str, Any]:
    return {
        "attemptState": shown_states(task.attempt_sub_state, task.attempt_exit_code)[1],
        "currentAttemptCreatedTime": task.attempt_created,
        "currentAttemptLaunchedTime": task.attempt_launched or task.attempt_completed,
        "currentAttemptCompletedTime": task.attempt_completed,
    }


def task_history(job: JobRow, attempt: int, history: list[TaskRow]) -> dict[str, Any]:
    """One task with all its attempts, newest first."""
    task = history[0]
    return {
        "username": job.user,
        "jobName": job.name,
        "jobAttemptId": attempt,
        "taskRoleName": task.role,
        "taskIndex": task.idx,
        "taskUid": task.uid,
        "taskState": shown_states(task.sub_state, task.exit_code)[0],
        "retries": task.retries,
        "accountableRetries": task.user_retries,
        "createdTime": task.created,
        "launchedTime": task.launched or task.completed,
        "completedTime": task.completed,
        "attempts": [
            {
                "attemptId": one.task_attempt,
                **_attempt_times(one),
                **_container(job.path, attempt, one, code=one.attempt_exit_code),
            }
            for one in history
        ],
    }


def job_attempt(job: JobRow, attempt: AttemptRow | None, tasks: list[TaskRow]) -> dict[str, Any]:
    """One attempt as the job-attempts resource shows it; before the first, the waiting job."""
    code = attempt.exit_code if attempt else job.exit_code
    sub_state = attempt.sub_state if attempt else job.sub_state
    outcome = outcome_of(attempt.outcome) if attempt else {}
    phrase = exit_spec(code)
    return {
        "jobName": job.name,
        "frameworkName": job.debug_id,
        "uid": job.uid,
        "userName": job.user,
        "state": shown_states(sub_state, code)[1],
        "originState": sub_state,
        "attemptIndex": attempt.attempt if attempt else None,
        "jobStartedTime": job.created,
        "attemptStartedTime": attempt.created if attempt else None,
        "attemptCompletedTime": attempt.completed if attempt else None,
        "exitCode": code,
        "exitPhrase": phrase.phrase if phrase else None,
        "exitType": _exit_type(code),
        "exitDiagnostics": {
            "diagnosticsSummary": outcome.get("diagnostics"),
            "runtime": outcome.get("runtime"),
            "launcher": outcome.get("launcher"),
        }
        if outcome
        else None,
        "appExitTriggerMessage": outcome.get("trigger"),
        "appExitTriggerTaskRoleName": outcome.get("triggerRole"),
        "appExitTriggerTaskIndex": outcome.get("triggerIndex"),
        "appExitSpec": _exit_spec(code),
        "appExitDiagnostics": outcome.get("diagnostics"),
        "appExitMessages": exit_messages(outcome),
        "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.tasks,
        "totalTaskRoleNumber": job.roles,
        "taskRoles": {
            role: {
                "taskRoleStatus": {"name": role},
                "taskStatuses": [_brief_task(job.path, attempt.attempt, task) for task in found],  # type: ignore[union-attr]
            }
            for role, found in (_by_role(job, tasks) if attempt else {}).items()
        },
        "isLatest": attempt is None or attempt.attempt == job.attempt,
    }


def _brief_task(job_path: str, attempt: int, task: TaskRow) -> dict[str, Any]:
    return {
        "taskIndex": task.idx,
        "taskState": shown_states(task.sub_state, task.exit_code)[0],
        "containerId": task.attempt_uid,
        "containerIp": task.ip,
        "containerGpus": task.gpus or None,
        "containerLog": log_path(job_path, attempt, task),
        "containerExitCode": task.exit_code,
    }


def event(job: JobRow, row: EventRow) -> dict[str, Any]:
    """One line of the event log."""
    return {
        "uid": f"{job.uid}-{row.id}",
        "frameworkName": job.debug_id,
        "podUid": row.pod_uid,
        "taskroleName": row.role,
        "taskName": None if row.role is None else f"{job.debug_id}-{row.role}-{row.idx}",
        "taskIndex": row.idx,
        "type": row.type,
        "reason": row.reason,
        "message": row.message,
        "firstTimestamp": iso(row.first),
        "lastTimestamp": iso(row.last),
        "count": row.times,
        "sourceComponent": row.component,
        "sourceHost": None,
    }


def iso(milliseconds: int) -> str:
    """Epoch milliseconds as ISO-8601 in UTC."""
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
