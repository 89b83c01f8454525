"""A large store over HTTP: lists of 1,000 to 1,000,000 jobs, 2,000 tasks in detail, 25,000 attempts."""

from __future__ import annotations

import argparse
import http.client
import json
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

from measure import report

from support.servers import ServerProcess

STATES = ["SUCCEEDED"] * 70 + ["FAILED"] * 20 + ["STOPPED"] * 10
JOB_COLUMNS = (
    "user, name, debug_id, uid, state, sub_state, submitted, created, launched, completed, exit_code, vc,"
    " gpus, tasks, roles, priority, role_names, attempt"
)
PAGE = "/api/v2/jobs?offset=0&limit=20&withTotalCount=true"
VIEWS = {
    "list page": PAGE,
    "of one user": PAGE + "&username=user3",
    "failed or stopped, by name": PAGE + "&state=FAILED,STOPPED&order=jobName,ASC",
    "of one VC, by completion": PAGE + "&vc=vc1&order=completionTime,DESC",
}
TASKS, ROLES, RETRIES = 2000, 250, 100


def jobs(first: int, last: int) -> Iterator[tuple[object, ...]]:
    pick = random.Random(first)
    for number in range(first, last):
        state = pick.choice(STATES)
        at = 1_700_000_000_000 + number * 1000
        yield (
            *(f"user{pick.randrange(50)}", f"job-{number:07d}", f"{number:032x}", f"uid-{number}"),
            *(state, "Completed", at, at, at + 5000, at + 60_000, 0 if state == "SUCCEEDED" else 255),
            *(pick.choice(("default", "vc1", "vc2")), pick.randrange(8), pick.randrange(1, 10), 1),
            *(pick.choice(("~", "prod", "test")), "worker", 0),
        )


def open_store(server: ServerProcess) -> sqlite3.Connection:
    """The server's own file, written to directly while it is down."""
    connection = sqlite3.connect(server.data_dir / "server.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")
    return connection


def fill(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Indexes are made afterwards: in order, that takes a tenth of the time."""
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'jobs' AND sql NOT NULL"
    ).fetchall()
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.execute("BEGIN")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    marks = ", ".join("?" * len(JOB_COLUMNS.split(",")))
    connection.executemany(f"INSERT INTO jobs ({JOB_COLUMNS}) VALUES ({marks})", jobs(first, last))
    connection.execute("DELETE FROM job_counts")
    connection.execute(
        "INSERT INTO job_counts SELECT user, vc, state, priority, count(*) FROM jobs GROUP BY 1, 2, 3, 4"
    )
    for _, sql in (*indexes, *triggers):
        connection.execute(sql)
    connection.execute("COMMIT")


def add_wide_job(connection: sqlite3.Connection, user: str, name: str, *, tasks: int, attempts: int) -> None:
    at = 1_800_000_000_000
    cursor = connection.execute(
        f"INSERT INTO jobs ({JOB_COLUMNS}) VALUES (?, ?, 'd', 'u', 'FAILED', 'Completed', ?, ?, ?, ?, 255,"
        " 'default', 0, ?, 1, '~', 'worker', ?)",
        (user, name, at, at, at, at, tasks, attempts - 1),
    )
    job = cursor.lastrowid
    outcome = json.dumps({"code": 255, "diagnostics": "PodPattern matched:\n", "runtime": {"exitCode": 255}})
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO job_attempts VALUES (?, ?, 'u', 'Completed', ?, ?, ?, 255, 'worker/0/0', ?)",
        [(job, attempt, at, at, at, outcome) for attempt in range(attempts)],
    )
    every = [(job, attempt, index) for attempt in range(attempts) for index in range(tasks)]
    connection.executemany(
        "INSERT INTO tasks (job_id, attempt, role, idx, uid, sub_state, created, launched, completed,"
        " exit_code) VALUES (?, ?, 'worker', ?, 'u', 'Completed', ?, ?, ?, 255)",
        [(*key, at, at, at) for key in every],
    )
    connection.executemany(
        "INSERT INTO task_attempts (job_id, attempt, role, idx, task_attempt, uid, sub_state, node, ip,"
        " ports, handle, created, launched, completed, exit_code, outcome)"
        " VALUES (?, ?, 'worker', ?, 0, 'u', 'AttemptCompleted', 'n',"
        ' \'127.0.0.1\', \'{"ssh": "23660", "http": "39896"}\', \'process:/x\', ?, ?, ?, 255, ?)',
        [(*key, at, at, at, outcome) for key in every],
    )
    connection.execute("COMMIT")


class Caller:
    """One kept connection."""

    def __init__(self, server: ServerProcess) -> None:
        where = urlsplit(server.uri)
        self._connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
        self._headers = {"Authorization": f"Bearer {server.token}"}

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body[:300])
        return body

    def p50(self, path: str, rounds: int) -> float:
        """Milliseconds, the median."""
        self.get(path)
        taken = []
        for _ in range(rounds):
            began = time.perf_counter()
            self.get(path)
            taken.append((time.perf_counter() - began) * 1000)
        return statistics.median(taken)


def at_once(server: ServerProcess, path: str, callers: int) -> float:
    """Milliseconds until the slowest of several first-time viewers has its answer."""
    ready, spent = threading.Barrier(callers), []

    def view() -> None:
        caller = Caller(server)
        caller.get("/healthz")
        ready.wait()
        began = time.perf_counter()
        caller.get(path)
        spent.append((time.perf_counter() - began) * 1000)

    threads = [threading.Thread(target=view) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(spent)


def requests_per_second(server: ServerProcess, path: str, *, callers: int = 4, seconds: float = 3.0) -> float:
    done = [0] * callers
    until = time.perf_counter() + seconds

    def ask(number: int) -> None:
        caller = Caller(server)
        while time.perf_counter() < until:
            caller.get(path)
            done[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / seconds


def lists(server: ServerProcess, sizes: list[int], rounds: int) -> None:
    medians: dict[str, list[float]] = {name: [] for name in VIEWS}
    filled = 0
    for size in sizes:
        server.stop()
        connection = open_store(server)
        fill(connection, filled, size)
        connection.close()
        filled = size
        server.start()
        caller = Caller(server)
        reference = caller.p50("/healthz", rounds)
        for name, path in VIEWS.items():
            found = caller.p50(path, rounds)
            medians[name].append(found)
            told = f"{found:.2f} ms, {found / reference:.1f}x healthz"
            report(f"{name}, {size:,} jobs", told, "<= 5 ms", found <= 5)
        rate = requests_per_second(server, PAGE)
        report(f"list page, {size:,} jobs, 4 callers", f"{rate:.0f}/s", ">= 500/s", rate >= 500)
        keyword = caller.p50(PAGE + "&keyword=" + quote("9" * 4), 5)
        print(f"{'  keyword search (on its own thread)':<58} {keyword:.1f} ms")
    for name, found in medians.items():
        growth = found[-1] / found[0]
        report(f"{name}, largest over smallest", f"{growth:.2f}x", "flat (<= 2x)", growth <= 2)


def wide_jobs(server: ServerProcess, rounds: int) -> None:
    server.stop()
    connection = open_store(server)
    add_wide_job(connection, server.ready["user"], "wide", tasks=TASKS, attempts=1)
    add_wide_job(connection, server.ready["user"], "wide-too", tasks=TASKS, attempts=1)
    add_wide_job(connection, server.ready["user"], "retried", tasks=ROLES, attempts=RETRIES)
    connection.close()
    server.start()
    caller = Caller(server)
    path = f"/api/v2/jobs/{server.user}~"
    reference = caller.p50("/healthz", rounds)
    began = time.perf_counter()
    caller.get(path + "wide")
    first = (time.perf_counter() - began) * 1000
    again = caller.p50(path + "wide", rounds)
    report(
        f"detail of {TASKS:,} tasks, first",
        f"{first:.0f} ms, {first / reference:.0f}x healthz",
        "<= 60 ms",
        first <= 60,
    )
    report(
        f"detail of {TASKS:,} tasks, unchanged",
        f"{again:.1f} ms, {again / reference:.0f}x healthz",
        "<= 60 ms",
        again <= 60,
    )
    ten = at_once(server, path + "wide-too", 10)
    report(
        "ten viewers of the same, the slowest",
        f"{ten:.0f} ms, {ten / reference:.0f}x healthz",
        "<= 300 ms",
        ten <= 300,
    )
    history = caller.p50(path + "retried/job-attempts", 3)
    told = f"{history:.0f} ms, {history / reference:.0f}x healthz"
    report(f"history of {ROLES} tasks x {RETRIES} attempts", told, "<= 1 s", history <= 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,100000,1000000", help="numbers of stored jobs, growing")
    parser.add_argument("--rounds", type=int, default=100)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opai-bench-") as folder:
        server = ServerProcess(Path(folder), "--launcher", "process").start()
        try:
            wide_jobs(server, args.rounds)
            lists(server, [int(size) for size in args.sizes.split(",")], args.rounds)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
