"""The job list: filters and orders as SQL that touches as few rows with a million jobs as with a thousand."""

from __future__ import annotations

import itertools
import sqlite3
from typing import Any, NamedTuple

NO_CLASS = "~"
FEW = 3000  # that many rows are found and sorted well within the time that a page may take
LARGEST_BRANCHING = 24

# What each order field sorts by, and the index that already has that order.
ORDERS: dict[str, tuple[tuple[str, ...], str]] = {
    "jobName": (("name", "user", "vc"), "jobs_name"),
    "submissionTime": (("submitted",), "jobs_submitted"),
    "username": (("user", "submitted"), "jobs_user"),
    "vc": (("vc", "submitted"), "jobs_vc"),
    "retries": (("retries",), "jobs_retries"),
    "totalTaskNumber": (("tasks",), "jobs_tasks"),
    "totalGpuNumber": (("gpus",), "jobs_gpus"),
    "state": (("state", "submitted"), "jobs_state"),
    "completionTime": (("completed IS NULL", "completed"), "jobs_completed"),
    "jobPriority": (("priority", "submitted"), "jobs_priority"),
}


class JobFilter(NamedTuple):
    """What a list request asks for; an empty tuple means no restriction."""

    users: tuple[str, ...] = ()
    vcs: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    keyword: str = ""
    tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        """True where the counters alone tell how many jobs match."""
        return not (self.keyword or self.tags or self.without_tags)


def parse_order(text: str | None) -> tuple[str, bool]:
    """`field,ASC|DESC` as (field, descending); anything else means newest first."""
    field, _, direction = (text or "").partition(",")
    if field in ORDERS and direction in ("ASC", "DESC"):
        return field, direction == "DESC"
    return "submissionTime", True


def count(connection: sqlite3.Connection, wanted: JobFilter) -> int:
    """How many jobs match: from the counters where they suffice, by looking otherwise."""
    where, values = _where(wanted)
    source = "sum(n) FROM job_counts" if wanted.counted else "count(*) FROM jobs"
    return int(connection.execute(f"SELECT {source}{where}", values).fetchone()[0] or 0)


def page(
    connection: sqlite3.Connection,
    wanted: JobFilter,
    *,
    columns: str,
    order: tuple[str, bool] = ("submissionTime", True),
    offset: int = 0,
    limit: int = 5000,
    matches: int | None = None,
) -> list[tuple[Any, ...]]:
    """The rows of one page; `matches`, where it is known already, saves counting again."""
    if limit == 0:
        return []
    field, descending = order
    sorting = _order_by(field, descending)
    branches = _combinations(wanted) if field == "submissionTime" and wanted.counted else []
    if 1 < len(branches) <= LARGEST_BRANCHING:
        sql, values = _merged(branches, columns, sorting, offset + limit)
    else:
        where, values = _where(wanted)
        source = "jobs"
        if where and len(branches) != 1 and (wanted.keyword or wanted.counted):
            many = (count(connection, wanted) if matches is None else matches) > FEW
            if many:
                source = f"jobs INDEXED BY {ORDERS[field][1]}"
            elif wanted.keyword:
                where = f" WHERE id IN (SELECT id FROM jobs{where})"  # noqa: S608 - names are ours
        sql = f"SELECT {columns} FROM {source}{where} ORDER BY {sorting}"  # noqa: S608 - names are ours
    return connection.execute(f"{sql} LIMIT ? OFFSET ?", [*values, limit, offset]).fetchall()


def _combinations(wanted: JobFilter) -> list[JobFilter]:
    """The same jobs as filters of one value each, so that an index walk gives each of them in order."""
    return [
        JobFilter(
            users=(user,) if user else (),
            vcs=(vc,) if vc else (),
            states=(state,) if state else (),
            priorities=(priority,) if priority else (),
        )
        for user, vc, state, priority in itertools.product(
            wanted.users or (None,),
            wanted.vcs or (None,),
            wanted.states or (None,),
            wanted.priorities or (None,),
        )
    ]


def _merged(branches: list[JobFilter], columns: str, sorting: str, reach: int) -> tuple[str, list[Any]]:
    """One index walk per branch, each ending after `reach` rows, sorted together."""
    parts: list[str] = []
    values: list[Any] = []
    for branch in branches:
        where, found = _where(branch)
        walk = f"SELECT id FROM jobs{where} ORDER BY {sorting} LIMIT ?"  # noqa: S608 - names are ours
        parts.append(f"SELECT * FROM ({walk})")  # noqa: S608
        values += [*found, reach]
    union = " UNION ALL ".join(parts)
    return f"SELECT {columns} FROM jobs WHERE id IN ({union}) ORDER BY {sorting}", values  # noqa: S608


def _order_by(field: str, descending: bool) -> str:
    direction = "DESC" if descending else "ASC"
    return ", ".join(f"{column} {direction}" for column in (*ORDERS[field][0], "id"))


def _where(wanted: JobFilter) -> tuple[str, list[Any]]:
    terms: list[str] = []
    values: list[Any] = []
    for column, accepted in (
        ("user", wanted.users),
        ("vc", wanted.vcs),
        ("state", wanted.states),
        ("priority", wanted.priorities),
    ):
        if accepted:
            terms.append(f"{column} IN ({_marks(accepted)})")
            values += accepted
    if wanted.keyword:
        terms.append("(instr(name, ?) OR instr(user, ?) OR instr(vc, ?))")
        values += [wanted.keyword] * 3
    for word, tags in (("IN", wanted.tags), ("NOT IN", wanted.without_tags)):
        if tags:
            terms.append(f"id {word} (SELECT job_id FROM job_tags WHERE tag IN ({_marks(tags)}))")  # noqa: S608
            values += tags
    return (" WHERE " + " AND ".join(terms) if terms else "", values)


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
