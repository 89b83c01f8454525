"""`opai job list`: jobs row by row, or one job's detail, config or ssh addresses."""

from __future__ import annotations

from openpaisdk.commands.result import Column, Result, View
from openpaisdk.commands.wording import ago, duration, ran_for, shown_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.core import Cluster

STATES = ("WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "STOPPED", "FAILED")


def list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="show this one (NAME, or USER~NAME)")
    parser.add_argument(
        "part", nargs="?", choices=("config", "ssh"), help="its config, or where to reach its tasks"
    )
    parser.add_argument(
        "--state", action="append", metavar="STATE", help="only in this state; may be repeated"
    )
    parser.add_argument("--user", action="append", metavar="NAME", help="only of this user; may be repeated")
    parser.add_argument("--all-users", action="store_true", help="of everybody, not only yours")
    parser.add_argument(
        "--vc", action="append", metavar="VC", help="only of this virtual cluster; may be repeated"
    )
    parser.add_argument(
        "--keyword", metavar="TEXT", help="only with this text in name, user or virtual cluster"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="at most N")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="leave out the first N")
    parser.add_argument("--name", action="store_true", help="only the names")


def list_run(args: Namespace, context: Context) -> Result:
    if args.job:
        return _one(args, context.cluster())
    _check(args)
    # The cluster is opened and asked for the first row here, so that errors come before any output.
    cluster = context.cluster()
    rows = _first_known(_rows(args, cluster))
    if args.name:
        return Result([_name(row, cluster.user) for row in rows], View("text"))
    view = View(
        "table",
        columns=_columns(args),
        name=lambda row: _name(row, cluster.user),
        empty="no jobs" + (" fit" if _filtered(args) else "; `opai job sub -- COMMAND` submits one"),
    )
    return Result(rows, view)


def _filtered(args: Namespace) -> bool:
    return bool(args.state or args.user or args.vc or args.keyword or args.offset)


def _check(args: Namespace) -> None:
    from openpaisdk.config import nearest
    from openpaisdk.errors import UsageError

    args.state = [state for text in args.state or () for state in text.upper().split(",")]
    for state in args.state:
        if state not in STATES:
            near = nearest(state, STATES)
            raise UsageError(
                f"--state: there is no state {state!r}",
                hint=f"did you mean {near}?" if near else f"there are {', '.join(STATES)}",
            )
    for option in ("limit", "offset"):
        value = getattr(args, option)
        if value is not None and value < 0:
            raise UsageError(f"--{option}: expected 0 or more, got {value}")


def _rows(args: Namespace, cluster: Cluster) -> Iterator[dict[str, Any]]:
    return cluster.iter_jobs(
        username=args.user or None,
        all_users=args.all_users,
        state=args.state or None,
        vc=args.vc or None,
        keyword=args.keyword,
        limit=args.limit,
        offset=args.offset,
    )


def _first_known(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    from itertools import chain, islice

    return chain(list(islice(rows, 1)), rows)


def _name(row: dict[str, Any], me: str) -> str:
    """A bare name for one's own jobs, `user~name` for others': what every command understands."""
    return str(row["name"]) if row.get("username", me) == me else f"{row['username']}~{row['name']}"


def _columns(args: Namespace) -> tuple[Column, ...]:
    return (
        Column("NAME", "name"),
        *((Column("USER", "username"),) if args.all_users or args.user else ()),
        Column("STATE", shown_state, state=True),
        Column("VC", "virtualCluster", spare=5),
        Column("GPUS", "totalGpuNumber", right=True, spare=2),
        Column("TASKS", "totalTaskNumber", right=True, spare=3),
        Column("RETRIES", lambda row: row.get("retries") or "", right=True, spare=4),
        Column("SUBMITTED", lambda row: ago(row.get("submissionTime") or row.get("createdTime"))),
        Column("RAN", lambda row: duration(ran_for(row)), right=True, spare=1),
        Column("EXIT", "appExitCode", right=True),
    )


def _one(args: Namespace, cluster: Cluster) -> Result:
    if args.part == "config":
        config = cluster.job_config(args.job)
        return Result(config, View("text", name=lambda data: data.get("name")))
    detail = cluster.job(args.job)
    if args.part == "ssh":
        from openpaisdk.commands.tasks import ssh_addresses

        rows = ssh_addresses(detail)
        if "exec" in cluster.extensions:
            # Our server runs no ssh daemon in tasks; it opens their environment itself.
            rows = [{**row, "command": f"opai job ssh {args.job} {row['task']}"} for row in rows]
        view = View(
            "table",
            columns=(
                Column("TASK", "task"),
                Column("STATE", "state", state=True),
                Column("COMMAND", "command"),
            ),
            name="task",
            empty=f"no task of {args.job} can be reached by ssh now",
        )
        return Result(rows, view)
    from openpaisdk.commands.detail import detail_text

    return Result(detail, View("text", write=detail_text, name="name"))
