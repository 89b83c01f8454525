"""`opai job signal`: asks the program inside a running job for a checkpoint."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context


def signal_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="NAME, or USER~NAME")
    parser.add_argument("name", choices=("checkpoint",), metavar="checkpoint", help="what to ask for")
    parser.add_argument("--task", metavar="ROLE/INDEX", help="only this task; all that listen without it")


def signal_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.commands.tasks import parse_task

    task = "/".join(map(str, parse_task(args.task))) if args.task else None
    told = context.cluster().signal(args.job, args.name, task=task)
    context.say(f"{args.job}  {args.name} asked for in {', '.join(told)}")
    return Result({"job": args.job, "name": args.name, "tasks": told}, View("nothing", name="job"))
