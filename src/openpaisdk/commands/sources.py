"""The one place where local code joins a job before it is submitted."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context
    from openpaisdk.job import Job


def source_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-s", "--source", action="append", default=[], metavar="PATH", help="file, folder or glob to send along"
    )
    parser.add_argument("--no-source", action="store_true", help="send no code along")


def ship_sources(job: Job, args: Namespace, context: Context) -> None:
    """Sends the files that `-s` names (the current folder without it) and notes them in the job."""
    if args.no_source:
        return
    from importlib import import_module
    from importlib.util import find_spec

    from openpaisdk.errors import UsageError

    if find_spec("openpaisdk.workspace") is None:
        if args.source:
            raise UsageError(f"-s {args.source[0]}: this installation cannot send code along")
        return
    shipped = import_module("openpaisdk.workspace").ship_source(job, context.cluster(), args.source)
    if shipped:
        context.note = f"code {shipped}"
