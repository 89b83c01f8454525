"""`opai job logs`: what a job's tasks printed, merged and marked; with -f as it comes."""

from __future__ import annotations

from openpaisdk.commands.log_lines import as_written, marker, record
from openpaisdk.commands.result import Result, View
from openpaisdk.commands.tasks import each_task, parse_task, pick_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.core import Cluster


def logs_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="NAME, or USER~NAME")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    parser.add_argument(
        "--task", action="append", default=[], metavar="ROLE/INDEX", help="only this task; repeatable"
    )
    parser.add_argument("--stdout", action="store_true", help="only standard output")
    parser.add_argument("--stderr", action="store_true", help="only standard error")
    parser.add_argument("--tail", type=int, metavar="N", help="begin with the last N lines of each task")


def logs_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.errors import UsageError

    if args.tail is not None and args.tail < 0:
        raise UsageError(f"--tail: expected 0 or more, got {args.tail}")
    cluster = context.cluster()
    detail = cluster.job(args.job)
    tasks = [f"{role}/{index}" for role, index in map(parse_task, args.task)]
    for task in tasks:
        if detail.get("taskRoles"):
            pick_task(detail, task)
    streams = [name for name in ("stdout", "stderr") if getattr(args, name)] or ["stdout", "stderr"]
    count = len(tasks) or _task_count(args.job, detail, cluster)
    raw = count == 1 and args.output == "table" and context.log_streams is not None
    if args.follow:
        records = _followed(args, context, tasks, streams, lines=not raw)
    else:
        records = _written(args, cluster, detail, tasks, streams, lines=not raw)
    view = View("log", write=as_written if raw else marker(count), name=lambda record: record["task"])
    return Result(records, view)


def _task_count(job: str, detail: dict[str, Any], cluster: Cluster) -> int:
    """How many tasks the job has; the config tells while none has been placed yet."""
    known = len(list(each_task(detail)))
    if known:
        return known
    from openpaisdk.protocol import totals

    return totals(cluster.job_config(job))[1]


def _followed(
    args: Namespace, context: Context, tasks: list[str], streams: list[str], lines: bool
) -> Iterator[dict[str, Any]]:
    from openpaisdk.commands.following import Progress, ended, goes_on
    from openpaisdk.core import LogLine

    progress = Progress(args.job, context)
    try:
        for event in context.cluster().follow(
            args.job, streams=streams, tasks=tasks or None, tail=args.tail, lines=lines
        ):
            if isinstance(event, LogLine):
                yield record(event)
            elif event.final:
                context.say(ended(context, args.job, event.state, event.exit_code))
            else:
                progress.state(event.state.lower())
    except KeyboardInterrupt:
        context.interrupted(goes_on(context, args.job))
        raise


def _written(
    args: Namespace, cluster: Cluster, detail: Any, tasks: list[str], streams: list[str], lines: bool
) -> Iterator[dict[str, Any]]:
    from openpaisdk.errors import OpenPAIError

    for label, _ in each_task(detail):
        if tasks and label not in tasks:
            continue
        role, index = parse_task(label)
        for stream in streams:
            try:
                text = cluster.read_log(args.job, role, index, stream=stream, tail=args.tail)
            except OpenPAIError as error:
                # Nothing placed yet; or (416) the end of a log that is still empty was asked for.
                if error.code != "NoTaskLogError" and error.http_status != 416:
                    raise
                continue
            for piece in (text.removesuffix("\n").split("\n") if lines else [text]) if text else ():
                yield {"task": label, "stream": stream, "text": piece}
