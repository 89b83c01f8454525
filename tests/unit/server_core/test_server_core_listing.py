"""The job list against a plain reading of its rules, and the counters against counting."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openpaisdk.server import listing
from openpaisdk.server.listing import NO_CLASS, JobFilter, parse_order
from openpaisdk.server.schema import SCHEMA

COLUMNS = (
    "id",
    "user",
    "name",
    "state",
    "vc",
    "priority",
    "submitted",
    "completed",
    "retries",
    "tasks",
    "gpus",
)
USERS, VCS, STATES, CLASSES = (
    ("ann", "bob", "cy"),
    ("default", "vc1"),
    ("WAITING", "FAILED"),
    (NO_CLASS, "prod"),
)

rows = st.lists(
    st.tuples(
        st.sampled_from(USERS),
        st.sampled_from(STATES),
        st.sampled_from(VCS),
        st.sampled_from(CLASSES),
        st.integers(0, 5),
        st.one_of(st.none(), st.integers(0, 5)),
        st.integers(0, 2),
    ),
    max_size=25,
)


def some(values):
    return st.lists(st.sampled_from(values), max_size=3, unique=True).map(tuple)


filters = st.builds(
    JobFilter,
    users=some((*USERS, "nobody")),
    vcs=some(VCS),
    states=some((*STATES, "RUNNING")),
    priorities=some(CLASSES),
    keyword=st.sampled_from(("", "", "an", "job-1", "vc")),
    tags=st.sampled_from(((), (), ("red",), ("red", "blue"))),
    without_tags=st.sampled_from(((), (), ("blue",))),
)


def filled(jobs) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(SCHEMA)
    for number, (user, state, vc, priority, submitted, completed, count) in enumerate(jobs):
        connection.execute(
            "INSERT INTO jobs (user, name, debug_id, uid, state, sub_state, submitted, completed, vc, gpus,"
            " tasks, roles, retries, priority, role_names)"
            " VALUES (?, ?, '', '', ?, 'Completed', ?, ?, ?, ?, ?, 1, ?, ?, '')",
            (user, f"job-{number}", state, submitted, completed, vc, count, count, count, priority),
        )
        if number % 3 == 0:
            connection.execute(
                "INSERT INTO job_tags VALUES (?, ?)", ("red" if number % 2 else "blue", number + 1)
            )
    return connection


def matches(row, wanted: JobFilter, tags: set[str]) -> bool:
    return (
        (not wanted.users or row["user"] in wanted.users)
        and (not wanted.vcs or row["vc"] in wanted.vcs)
        and (not wanted.states or row["state"] in wanted.states)
        and (not wanted.priorities or row["priority"] in wanted.priorities)
        and (not wanted.keyword or any(wanted.keyword in row[name] for name in ("user", "name", "vc")))
        and (not wanted.tags or bool(tags & set(wanted.tags)))
        and not tags & set(wanted.without_tags)
    )


def sort_key(field: str):
    keys = {
        "jobName": lambda row: (row["name"], row["user"], row["vc"]),
        "submissionTime": lambda row: (row["submitted"],),
        "username": lambda row: (row["user"], row["submitted"]),
        "vc": lambda row: (row["vc"], row["submitted"]),
        "retries": lambda row: (row["retries"],),
        "totalTaskNumber": lambda row: (row["tasks"],),
        "totalGpuNumber": lambda row: (row["gpus"],),
        "state": lambda row: (row["state"], row["submitted"]),
        "completionTime": lambda row: (row["completed"] is None, row["completed"] or 0),
        "jobPriority": lambda row: (row["priority"], row["submitted"]),
    }
    return lambda row: (*keys[field](row), row["id"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows,
    filters,
    st.sampled_from(sorted(listing.ORDERS)),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 6),
    st.booleans(),
)
def test_a_page_is_what_the_rules_say(jobs, wanted, field, descending, offset, limit, crowded):
    connection = filled(jobs)
    few, listing.FEW = listing.FEW, 2 if crowded else listing.FEW
    try:
        got = listing.page(
            connection,
            wanted,
            columns=", ".join(COLUMNS),
            order=(field, descending),
            offset=offset,
            limit=limit,
        )
        total = listing.count(connection, wanted)
    finally:
        listing.FEW = few
    everything = [
        dict(zip(COLUMNS, row)) for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM jobs")
    ]
    tags = {row["id"]: set() for row in everything}
    for tag, job_id in connection.execute("SELECT tag, job_id FROM job_tags"):
        tags[job_id].add(tag)
    expected = sorted(
        (row for row in everything if matches(row, wanted, tags[row["id"]])),
        key=sort_key(field),
        reverse=descending,
    )
    assert total == len(expected)
    assert [row[0] for row in got] == [row["id"] for row in expected[offset : offset + limit]]
    connection.close()


@settings(max_examples=50, deadline=None)
@given(
    rows,
    st.lists(
        st.tuples(st.integers(1, 25), st.sampled_from(("WAITING", "RUNNING", "FAILED", ""))), max_size=20
    ),
)
def test_counters_follow_every_change(jobs, changes):
    connection = filled(jobs)
    for job_id, state in changes:
        if state:
            connection.execute("UPDATE jobs SET state = ? WHERE id = ?", (state, job_id))
        else:
            connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
    kept = "SELECT user, vc, state, priority, n FROM job_counts WHERE n <> 0 ORDER BY 1, 2, 3, 4"
    counted = "SELECT user, vc, state, priority, count(*) FROM jobs GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
    assert connection.execute(kept).fetchall() == connection.execute(counted).fetchall()
    connection.close()


@pytest.mark.parametrize("field", sorted(listing.ORDERS))
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_no_order_sorts_the_whole_table(field, direction):
    connection = filled([])
    plan = _plan(connection, JobFilter(), (field, direction == "DESC"))
    assert "TEMP B-TREE" not in plan, plan
    connection.close()


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(users=("ann",)),
        JobFilter(states=("RUNNING",)),
        JobFilter(users=("ann",), states=("RUNNING",)),
        JobFilter(vcs=("vc1",)),
        JobFilter(vcs=("vc1",), states=("FAILED",)),
        JobFilter(priorities=("prod",)),
    ],
)
def test_the_usual_filters_walk_an_index_in_order(wanted):
    connection = filled([])
    plan = _plan(connection, wanted, ("submissionTime", True))
    assert "TEMP B-TREE" not in plan and "SEARCH jobs USING" in plan, plan
    connection.close()


def _plan(connection: sqlite3.Connection, wanted: JobFilter, order: tuple[str, bool]) -> str:
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    listing.page(connection, wanted, columns="id, name, uid", order=order, limit=20)
    connection.set_trace_callback(None)
    statement = next(text for text in asked if "ORDER BY" in text)
    return "\n".join(str(row[3]) for row in connection.execute("EXPLAIN QUERY PLAN " + statement))


def test_orders_that_make_no_sense_mean_newest_first():
    assert parse_order("jobName,ASC") == ("jobName", False)
    for text in (None, "", "jobName", "jobName,UP", "id,ASC", "name;DROP TABLE jobs,ASC"):
        assert parse_order(text) == ("submissionTime", True)


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path):
    from openpaisdk.errors import ConfigError
    from openpaisdk.server.database import Database

    path = tmp_path / "server.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConfigError, match="newer"):
        Database(path)
