"""What each decision of the scheduler means for the store: one function per action, in one transaction."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from openpaisdk.scheduler import (
    Action,
    AttemptCompleted,
    JobCompleted,
    JobInfo,
    JobMoved,
    KillTasks,
    LaunchTasks,
    Record,
    RetryScheduled,
    StartAttempt,
    TaskCompleted,
    TaskMoved,
    TaskRef,
    TaskRetryScheduled,
    shown_states,
)
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.rows import AttemptRow

TaskKey = tuple[int, int, str, int]


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def task_key(ref: TaskRef) -> TaskKey:
    return int(ref.job_id), ref.attempt, ref.role, ref.index


def trigger_text(ref: TaskRef | None) -> str | None:
    """A task attempt in one column: `role/index/task attempt`."""
    return f"{ref.role}/{ref.index}/{ref.task_attempt}" if ref else None


class Step:
    """One step of the scheduler on its way into the store.

    `outcomes` tells how task attempts ended beyond their code; `addresses` where nodes are reached.
    """

    def __init__(
        self,
        *,
        now: float,
        jobs: Mapping[str, JobInfo],
        addresses: Mapping[str, str],
        outcomes: Mapping[TaskRef, dict[str, Any]],
    ) -> None:
        self.now = now
        self.jobs = jobs
        self.addresses = addresses
        self.outcomes = outcomes

    def store(self, connection: sqlite3.Connection, actions: Iterable[Action]) -> None:
        """Write all of it; a crash before the commit leaves the step as if it had not been decided."""
        touched: set[int] = set()
        for action in actions:
            write = _WRITERS.get(type(action))
            if write is not None:
                write(self, connection, action)
                ref = getattr(action, "task", None)
                touched.add(int(ref.job_id if ref is not None else action.job_id))  # type: ignore[union-attr]
        for job_id in touched:
            JobStore.update_job(connection, job_id, {})

    def _start_attempt(self, connection: sqlite3.Connection, action: StartAttempt) -> None:
        job_id, at = int(action.job_id), milliseconds(action.at)
        uid = str(uuid.uuid4())
        sub_state = "AttemptCreationRequested"
        JobStore.insert_attempt(
            connection, AttemptRow(job_id, action.attempt, uid, sub_state, at, None, None, None, None, None)
        )
        JobStore.insert_tasks(
            connection,
            (
                (
                    job_id,
                    action.attempt,
                    role.name,
                    index,
                    f"{uid}-{role.name}-{index}",
                    "AttemptCreationPending",
                    at,
                )
                for role in self.jobs[action.job_id].roles
                for index in range(role.instances)
            ),
        )
        self._move_job(
            connection,
            job_id,
            sub_state,
            None,
            {"attempt": action.attempt, "retry_at": None, "retry_delay": None},
        )
        connection.execute("UPDATE jobs SET created = ? WHERE id = ? AND created IS NULL", (at, job_id))

    def _launch_tasks(self, connection: sqlite3.Connection, action: LaunchTasks) -> None:
        job_id, at = int(action.job_id), milliseconds(action.at)
        sub_state = "AttemptCreationRequested"
        rows = []
        for start in action.tasks:
            ref, placed = start.task, start.placement
            ports = {label: ",".join(map(str, numbers)) for label, numbers in placed.ports.items()}
            rows.append(
                (
                    *(job_id, ref.attempt, ref.role, ref.index, ref.task_attempt, start.uid, sub_state),
                    *(placed.node or None, self.addresses.get(placed.node), json.dumps(ports)),
                    *(",".join(map(str, placed.gpus)), at),
                )
            )
        JobStore.insert_task_attempts(connection, rows)
        connection.executemany(
            "UPDATE tasks SET sub_state = ?, task_attempt = ?, exit_code = NULL, completed = NULL,"
            " retry_at = NULL WHERE job_id = ? AND attempt = ? AND role = ? AND idx = ?",
            [(sub_state, start.task.task_attempt, *task_key(start.task)) for start in action.tasks],
        )

    def _task_moved(self, connection: sqlite3.Connection, action: TaskMoved) -> None:
        key = task_key(action.task)
        attempt_changes: dict[str, Any] = {"sub_state": action.sub_state}
        JobStore.update_tasks(connection, [key], {"sub_state": action.sub_state})
        if action.sub_state == "AttemptRunning":
            at = milliseconds(action.at)
            attempt_changes["launched"] = at
            connection.execute(
                "UPDATE tasks SET launched = ? WHERE job_id = ? AND attempt = ? AND role = ? AND idx = ?"
                " AND launched IS NULL",
                (at, *key),
            )
        JobStore.update_task_attempts(connection, [(*key, action.task.task_attempt)], attempt_changes)

    def _job_moved(self, connection: sqlite3.Connection, action: JobMoved) -> None:
        job_id = int(action.job_id)
        extra: dict[str, Any] = {}
        if action.sub_state == "AttemptCreationPending":
            extra = {"retry_at": None, "retry_delay": None}
        else:
            changes: dict[str, Any] = {"sub_state": action.sub_state, "trigger": trigger_text(action.trigger)}
            if action.code is not None:
                changes["exit_code"] = action.code
            if action.sub_state == "AttemptRunning":
                changes["launched"] = milliseconds(action.at)
                connection.execute(
                    "UPDATE jobs SET launched = ? WHERE id = ? AND launched IS NULL",
                    (milliseconds(action.at), job_id),
                )
            JobStore.update_attempt(connection, job_id, action.attempt, changes)
        self._move_job(connection, job_id, action.sub_state, action.code, extra)

    def _kill_tasks(self, connection: sqlite3.Connection, action: KillTasks) -> None:
        sub_state = "AttemptDeletionRequested"
        keys = [task_key(ref) for ref in action.tasks]
        JobStore.update_tasks(connection, keys, {"sub_state": sub_state})
        JobStore.update_task_attempts(
            connection,
            [(*key, ref.task_attempt) for key, ref in zip(keys, action.tasks)],
            {"sub_state": sub_state, "kill_code": action.code},
        )

    def _task_completed(self, connection: sqlite3.Connection, action: TaskCompleted) -> None:
        key = task_key(action.task)
        at = milliseconds(action.at)
        known = self.outcomes.get(action.task)
        if known is None or known.get("code") != action.code:
            known = {"code": action.code, "launcher": action.message} if action.message else {}
            if action.message:
                known["diagnostics"] = action.message
        sub_state = "Completed" if action.final else "AttemptCompleted"
        JobStore.update_tasks(
            connection, [key], {"sub_state": sub_state, "exit_code": action.code, "completed": at}
        )
        JobStore.update_task_attempts(
            connection,
            [(*key, action.task.task_attempt)],
            {
                "sub_state": "AttemptCompleted",
                "exit_code": action.code,
                "completed": at,
                "outcome": json.dumps(known) if known else None,
            },
        )

    def _task_retry(self, connection: sqlite3.Connection, action: TaskRetryScheduled) -> None:
        JobStore.update_tasks(
            connection,
            [task_key(action.task)],
            {"retries": action.retries, "user_retries": action.counted_retries, "retry_at": action.at},
        )

    def _attempt_completed(self, connection: sqlite3.Connection, action: AttemptCompleted) -> None:
        job_id = int(action.job_id)
        outcome = _outcome_of_attempt(connection, action)
        JobStore.update_attempt(
            connection,
            job_id,
            action.attempt,
            {
                "sub_state": "AttemptCompleted",
                "exit_code": action.code,
                "completed": milliseconds(action.at),
                "trigger": trigger_text(action.trigger),
                "outcome": json.dumps(outcome) if outcome else None,
            },
        )
        self._move_job(connection, job_id, "AttemptCompleted", action.code, {})

    def _retry(self, connection: sqlite3.Connection, action: RetryScheduled) -> None:
        delay = action.at - self.now
        JobStore.update_job(
            connection,
            int(action.job_id),
            {
                "retries": action.retries,
                "user_retries": action.counted_retries,
                "retry_at": action.at,
                "retry_delay": delay if delay > 0 else None,
            },
        )

    def _job_completed(self, connection: sqlite3.Connection, action: JobCompleted) -> None:
        job_id = int(action.job_id)
        if action.attempt is not None:
            JobStore.update_attempt(connection, job_id, action.attempt, {"sub_state": "Completed"})
        self._move_job(
            connection,
            job_id,
            "Completed",
            action.code,
            {"completed": milliseconds(action.at), "retry_at": None, "retry_delay": None},
        )

    def _record(self, connection: sqlite3.Connection, action: Record) -> None:
        JobStore.insert_event(
            connection,
            int(action.job_id),
            at=milliseconds(action.at),
            type_=action.type,
            reason=action.reason,
            message=action.message,
            role=action.task.role if action.task else None,
            index=action.task.index if action.task else None,
            component="scheduler",
        )

    @staticmethod
    def _move_job(
        connection: sqlite3.Connection, job_id: int, sub_state: str, code: int | None, extra: dict[str, Any]
    ) -> None:
        state = shown_states(sub_state, code)[0]
        JobStore.update_job(
            connection, job_id, {"sub_state": sub_state, "state": state, "exit_code": code, **extra}
        )


def _outcome_of_attempt(connection: sqlite3.Connection, action: AttemptCompleted) -> dict[str, Any]:
    """How the attempt ended: as the task that triggered it, where one did."""
    outcome: dict[str, Any] = {}
    ref = action.trigger
    if ref is not None:
        row = connection.execute(
            "SELECT outcome FROM task_attempts WHERE job_id = ? AND attempt = ? AND role = ? AND idx = ?"
            " AND task_attempt = ?",
            (*task_key(ref), ref.task_attempt),
        ).fetchone()
        if row and row[0]:
            outcome = json.loads(row[0])
        outcome |= {"triggerRole": ref.role, "triggerIndex": ref.index}
    if action.message:
        outcome["trigger"] = action.message
        outcome.setdefault("diagnostics", action.message)
    return outcome


_WRITERS: dict[type, Callable[[Step, sqlite3.Connection, Any], None]] = {
    StartAttempt: Step._start_attempt,
    LaunchTasks: Step._launch_tasks,
    TaskMoved: Step._task_moved,
    JobMoved: Step._job_moved,
    KillTasks: Step._kill_tasks,
    TaskCompleted: Step._task_completed,
    TaskRetryScheduled: Step._task_retry,
    AttemptCompleted: Step._attempt_completed,
    RetryScheduled: Step._retry,
    JobCompleted: Step._job_completed,
    Record: Step._record,
}
