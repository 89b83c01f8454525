"""`opai job wait`: until jobs have ended; the exit code is their outcome."""

from __future__ import annotations

from openpaisdk.commands.result import Column, Result, View
from openpaisdk.commands.wording import duration, outcome_code, shown_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context


def wait_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="NAME, or USER~NAME")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="give up after this time (exit code 6)"
    )


def wait_run(args: Namespace, context: Context) -> Result:
    from time import monotonic

    from openpaisdk.job.outcome import outcome

    cluster = context.cluster()
    end = None if args.timeout is None else monotonic() + args.timeout
    rows: list[dict[str, Any]] = []
    try:
        for position, name in enumerate(args.jobs):
            more = f" and {len(args.jobs) - position - 1} more" if position + 1 < len(args.jobs) else ""
            context.status(f"waiting for {name}{more}")
            left = None if end is None else max(0.0, end - monotonic())
            rows.append(dict(outcome(cluster.wait(name, timeout=left))))
    except KeyboardInterrupt:
        from openpaisdk.commands.following import goes_on

        context.interrupted(goes_on(context, *args.jobs[len(rows) :]))
        raise
    context.clear_status()
    view = View(
        "table",
        columns=(
            Column("NAME", "name"),
            Column("STATE", shown_state, state=True),
            Column("RAN", lambda row: duration(row["seconds"]), right=True),
            Column("EXIT", "exitCode", right=True),
        ),
        name="name",
    )
    return Result(rows, view, exit_code=outcome_code(str(row["state"]) for row in rows))
