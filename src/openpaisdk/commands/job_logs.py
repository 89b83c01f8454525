"""`opai job logs`: what a job's tasks printed, merged and marked; with -f as it comes."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View
from openpaisdk.commands.tasks import each_task, parse_task, pick_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator
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
    source = _followed if args.follow else _written
    records = source(args, cluster, detail, tasks, streams, lines=not raw)
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
    args: Namespace, cluster: Cluster, detail: Any, tasks: list[str], streams: list[str], lines: bool
) -> Iterator[dict[str, Any]]:
    for event in cluster.follow(args.job, streams=streams, tasks=tasks or None, tail=args.tail, lines=lines):
        if event.kind == "log":
            yield record(event)


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


def record(event: Any) -> dict[str, Any]:
    """A piece of log as data; the text of a whole line comes without its end."""
    return {"task": event.task, "stream": event.stream, "text": event.text}


def as_written(found: dict[str, Any]) -> str:
    """The text of a piece, untouched."""
    return str(found["text"])


def marker(count: int) -> Callable[[dict[str, Any]], str]:
    """The text of a line, marked with its task where there are several."""
    if count == 1:
        return lambda found: f"{found['text']}\n"
    return lambda found: f"{found['task']}  {found['text']}\n"
