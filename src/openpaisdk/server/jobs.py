"""All SQL about jobs, their attempts, tasks, tags and events.

Methods that change something take the connection of the transaction they belong to, so that one turn of the
loop is one commit; methods that read use the connection of the calling thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from openpaisdk.server import listing
from openpaisdk.server.database import Database
from openpaisdk.server.rows import AttemptRow, EventRow, JobRow, TaskRow
from openpaisdk.server.schema import SCHEMA as SCHEMA

JOB_COLUMNS = ", ".join(JobRow._fields)
_TASK_COLUMNS = (
    "t.role, t.idx, t.uid, t.sub_state, t.retries, t.user_retries, t.retry_at, t.created, t.launched,"
    " t.completed, t.exit_code, coalesce(a.task_attempt, t.task_attempt), a.uid,"
    " coalesce(a.sub_state, t.sub_state), a.node, a.ip, coalesce(a.ports, '{}'), coalesce(a.gpus, ''),"
    " a.handle, a.kill_code, a.created, a.launched, a.completed, a.exit_code, a.outcome"
)
_TASKS = (
    "FROM tasks t LEFT JOIN task_attempts a ON a.job_id = t.job_id AND a.attempt = t.attempt"
    " AND a.role = t.role AND a.idx = t.idx"
)
_CURRENT = " AND a.task_attempt = t.task_attempt"
_OF_ATTEMPT = " WHERE t.job_id = ? AND t.attempt = ?"
_OF_TASK = _OF_ATTEMPT + " AND t.role = ? AND t.idx = ?"


class JobStore:
    """The jobs of this server."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def find(self, user: str, name: str) -> JobRow | None:
        """The job with this name, or None."""
        return self._one("user = ? AND name = ?", (user, name))

    def by_id(self, job_id: int) -> JobRow | None:
        return self._one("id = ?", (job_id,))

    def by_submit_key(self, user: str, key: str) -> JobRow | None:
        """The job that an earlier submission with this key made."""
        return self._one("user = ? AND submit_key = ?", (user, key))

    def _one(self, condition: str, values: Sequence[object]) -> JobRow | None:
        sql = f"SELECT {JOB_COLUMNS} FROM jobs WHERE {condition}"  # noqa: S608 - names are ours
        row = self.db.read.execute(sql, values).fetchone()
        return JobRow._make(row) if row else None

    def unfinished(self) -> list[JobRow]:
        """Every job that is not over, oldest first: what a new server takes up again."""
        sql = f"SELECT {JOB_COLUMNS} FROM jobs WHERE sub_state <> 'Completed' ORDER BY id"  # noqa: S608
        return [JobRow._make(row) for row in self.db.read.execute(sql)]

    def spec(self, job_id: int) -> dict[str, Any] | None:
        """The job spec with its secrets: for the loop; mask it before it is shown."""
        row = self.db.read.execute("SELECT spec FROM job_specs WHERE job_id = ?", (job_id,)).fetchone()
        return json.loads(row[0]) if row else None

    def counts(self) -> dict[str, int]:
        """Number of jobs by state."""
        return dict(
            self.db.read.execute("SELECT state, sum(n) FROM job_counts GROUP BY state HAVING sum(n) > 0")
        )

    def page(
        self,
        connection: sqlite3.Connection,
        wanted: listing.JobFilter,
        *,
        order: tuple[str, bool],
        offset: int,
        limit: int,
        matches: int | None = None,
    ) -> list[JobRow]:
        """One page of the list."""
        rows = listing.page(
            connection, wanted, columns=JOB_COLUMNS, order=order, offset=offset, limit=limit, matches=matches
        )
        return [JobRow._make(row) for row in rows]

    def attempts(self, job_id: int, *, connection: sqlite3.Connection | None = None) -> list[AttemptRow]:
        """All attempts of a job, first one first."""
        rows = (connection or self.db.read).execute(
            "SELECT * FROM job_attempts WHERE job_id = ? ORDER BY attempt", (job_id,)
        )
        return [AttemptRow._make(row) for row in rows]

    def attempt(self, job_id: int, attempt: int) -> AttemptRow | None:
        row = self.db.read.execute(
            "SELECT * FROM job_attempts WHERE job_id = ? AND attempt = ?", (job_id, attempt)
        ).fetchone()
        return AttemptRow._make(row) if row else None

    def tasks(
        self, job_id: int, attempt: int, *, connection: sqlite3.Connection | None = None
    ) -> list[TaskRow]:
        """The tasks of one job attempt, each with its current task attempt."""
        rows = (connection or self.db.read).execute(
            f"SELECT {_TASK_COLUMNS} {_TASKS}{_CURRENT}{_OF_ATTEMPT} ORDER BY t.role, t.idx",
            (job_id, attempt),
        )
        return [TaskRow._make(row) for row in rows]

    def tasks_with_history(self, job_id: int, attempt: int) -> list[TaskRow]:
        """The tasks of one job attempt, once per task attempt."""
        rows = self.db.read.execute(
            f"SELECT {_TASK_COLUMNS} {_TASKS}{_OF_ATTEMPT} ORDER BY t.role, t.idx, a.task_attempt",
            (job_id, attempt),
        )
        return [TaskRow._make(row) for row in rows]

    def tasks_of_all_attempts(
        self, job_id: int, *, connection: sqlite3.Connection
    ) -> list[tuple[int, TaskRow]]:
        """(job attempt, task) for the whole history of a job; without outcomes, which are not shown there."""
        columns = _TASK_COLUMNS.replace("a.outcome", "NULL")
        rows = connection.execute(
            f"SELECT t.attempt, {columns} {_TASKS}{_CURRENT}"
            " WHERE t.job_id = ? ORDER BY t.attempt, t.role, t.idx",
            (job_id,),
        )
        return [(row[0], TaskRow._make(row[1:])) for row in rows]

    def task_history(self, job_id: int, attempt: int, role: str, index: int) -> list[TaskRow]:
        """One task with each of its attempts, newest first."""
        rows = self.db.read.execute(
            f"SELECT {_TASK_COLUMNS} {_TASKS}{_OF_TASK} ORDER BY a.task_attempt DESC",
            (job_id, attempt, role, index),
        )
        return [TaskRow._make(row) for row in rows]

    def task_attempt(
        self, job_id: int, attempt: int, role: str, index: int, task_attempt: int
    ) -> TaskRow | None:
        row = self.db.read.execute(
            f"SELECT {_TASK_COLUMNS} {_TASKS}{_OF_TASK} AND a.task_attempt = ?",
            (job_id, attempt, role, index, task_attempt),
        ).fetchone()
        return TaskRow._make(row) if row else None

    def handles(self, job_id: int) -> list[str]:
        """Every handle a launcher gave for this job."""
        rows = self.db.read.execute(
            "SELECT handle FROM task_attempts WHERE job_id = ? AND handle IS NOT NULL", (job_id,)
        )
        return [row[0] for row in rows]

    def events(self, job_id: int, type_: str | None = None) -> list[EventRow]:
        """The event log of a job, newest first."""
        rows = self.db.read.execute(
            "SELECT id, role, idx, pod_uid, type, reason, message, first, last, count, component"
            " FROM job_events WHERE job_id = ? AND (? IS NULL OR type = ?) ORDER BY last DESC, id DESC",
            (job_id, type_, type_),
        )
        return [EventRow._make(row) for row in rows]

    @staticmethod
    def insert_job(
        connection: sqlite3.Connection, columns: dict[str, Any], spec: str, *, submit_key: str | None
    ) -> int:
        """A new job; `columns` has the fields of JobRow that are known at submission."""
        names = [*columns, "submit_key"]
        marks = ", ".join("?" * len(names))
        cursor = connection.execute(
            f"INSERT INTO jobs ({', '.join(names)}) VALUES ({marks})",  # noqa: S608 - names are ours
            (*columns.values(), submit_key),
        )
        job_id = int(cursor.lastrowid or 0)
        connection.execute("INSERT INTO job_specs VALUES (?, ?)", (job_id, spec))
        return job_id

    @staticmethod
    def update_job(connection: sqlite3.Connection, job_id: int, changes: dict[str, Any]) -> None:
        """Set columns of a job; also marks it as changed."""
        sets = "".join(f"{name} = ?, " for name in changes)
        connection.execute(
            f"UPDATE jobs SET {sets}version = version + 1 WHERE id = ?",  # noqa: S608 - names are ours
            (*changes.values(), job_id),
        )

    @staticmethod
    def insert_attempt(connection: sqlite3.Connection, row: AttemptRow) -> None:
        connection.execute("INSERT OR REPLACE INTO job_attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    @staticmethod
    def update_attempt(
        connection: sqlite3.Connection, job_id: int, attempt: int, changes: dict[str, Any]
    ) -> None:
        sets = ", ".join(f"{name} = ?" for name in changes)
        connection.execute(
            f"UPDATE job_attempts SET {sets} WHERE job_id = ? AND attempt = ?",  # noqa: S608 - names are ours
            (*changes.values(), job_id, attempt),
        )

    @staticmethod
    def insert_tasks(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows (job_id, attempt, role, index, uid, sub_state, created)."""
        connection.executemany(
            "INSERT OR REPLACE INTO tasks (job_id, attempt, role, idx, uid, sub_state, created)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    @staticmethod
    def insert_task_attempts(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows (job_id, attempt, role, idx, task attempt, uid, sub_state, node, ip, ports, gpus, created)."""
        connection.executemany(
            "INSERT OR REPLACE INTO task_attempts (job_id, attempt, role, idx, task_attempt, uid, sub_state,"
            " node, ip, ports, gpus, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    @staticmethod
    def update_tasks(
        connection: sqlite3.Connection,
        keys: Iterable[tuple[int, int, str, int]],
        changes: dict[str, Any],
    ) -> None:
        """The same change for many tasks, keyed (job_id, attempt, role, index)."""
        sets = ", ".join(f"{name} = ?" for name in changes)
        values = tuple(changes.values())
        connection.executemany(
            f"UPDATE tasks SET {sets} WHERE job_id = ? AND attempt = ? AND role = ? AND idx = ?",  # noqa: S608
            [(*values, *key) for key in keys],
        )

    @staticmethod
    def update_task_attempts(
        connection: sqlite3.Connection,
        keys: Iterable[tuple[int, int, str, int, int]],
        changes: dict[str, Any],
    ) -> None:
        """The same change for many task attempts, keyed (job_id, attempt, role, index, task attempt)."""
        sets = ", ".join(f"{name} = ?" for name in changes)
        values = tuple(changes.values())
        connection.executemany(
            f"UPDATE task_attempts SET {sets}"  # noqa: S608 - names are ours
            " WHERE job_id = ? AND attempt = ? AND role = ? AND idx = ? AND task_attempt = ?",
            [(*values, *key) for key in keys],
        )

    @staticmethod
    def insert_event(
        connection: sqlite3.Connection,
        job_id: int,
        *,
        at: int,
        type_: str,
        reason: str,
        message: str,
        role: str | None = None,
        index: int | None = None,
        pod_uid: str | None = None,
        component: str = "server",
    ) -> None:
        """A line in the event log; the same words about the same task again only raise its count."""
        last = connection.execute(
            "SELECT id, role, idx, type, reason, message FROM job_events WHERE job_id = ?"
            " ORDER BY id DESC LIMIT 1",
            (job_id,),
        ).fetchone()
        if last and last[1:] == (role, index, type_, reason, message):
            connection.execute(
                "UPDATE job_events SET count = count + 1, last = ? WHERE id = ?", (at, last[0])
            )
            return
        connection.execute(
            "INSERT INTO job_events (job_id, role, idx, pod_uid, type, reason, message, first, last,"
            " component) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (job_id, role, index, pod_uid, type_, reason, message, at, at, component),
        )

    @staticmethod
    def set_tag(connection: sqlite3.Connection, job_id: int, tag: str, *, present: bool) -> bool:
        """Add or remove a tag; tells whether that changed anything."""
        sql = (
            "INSERT OR IGNORE INTO job_tags (tag, job_id) VALUES (?, ?)"
            if present
            else "DELETE FROM job_tags WHERE tag = ? AND job_id = ?"
        )
        if not connection.execute(sql, (tag, job_id)).rowcount:
            return False
        rows = connection.execute("SELECT tag FROM job_tags WHERE job_id = ? ORDER BY tag", (job_id,))
        JobStore.update_job(connection, job_id, {"tags": json.dumps([row[0] for row in rows])})
        return True

    @staticmethod
    def delete_job(connection: sqlite3.Connection, job_id: int) -> None:
        """Remove a job with all that hangs on it."""
        connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
