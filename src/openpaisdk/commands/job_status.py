"""`opai job status`: the state of one or several jobs, one line each."""

from __future__ import annotations

from openpaisdk.commands.result import Column, Result, View
from openpaisdk.commands.tasks import each_task
from openpaisdk.commands.wording import duration, ran_for, shown_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context


def status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="NAME, or USER~NAME")


def status_run(args: Namespace, context: Context) -> Result:
    cluster = context.cluster()
    rows = [status_row(cluster.job(name)) for name in args.jobs]
    view = View(
        "table",
        columns=(
            Column("NAME", "name"),
            Column("STATE", shown_state, state=True),
            Column("TASKS", lambda row: _task_words(row["tasks"])),
            Column("RETRIES", lambda row: row["retries"] or "", right=True, spare=1),
            Column("RAN", lambda row: duration(ran_for(row)), right=True),
            Column("EXIT", "exitCode", right=True),
        ),
        name="name",
    )
    return Result(rows, view)


def status_row(detail: dict[str, Any]) -> dict[str, Any]:
    """What matters of a job detail, flat."""
    status = detail["jobStatus"]
    tasks: dict[str, int] = {}
    for _, task in each_task(detail):
        state = str(task.get("taskState", "UNKNOWN"))
        tasks[state] = tasks.get(state, 0) + 1
    return {
        "name": detail["name"],
        "user": status.get("username"),
        "state": status.get("state"),
        "subState": status.get("subState"),
        "executionType": status.get("executionType"),
        "virtualCluster": status.get("virtualCluster"),
        "attempt": status.get("attemptId"),
        "retries": status.get("retries", 0),
        "submissionTime": status.get("submissionTime"),
        "launchedTime": status.get("launchedTime"),
        "completedTime": status.get("completedTime"),
        "exitCode": status.get("appExitCode"),
        "tasks": tasks,
    }


def _task_words(tasks: dict[str, int]) -> str:
    return ", ".join(f"{count} {state.lower()}" for state, count in tasks.items())
