"""The one place where local code joins a job before it is submitted."""

from __future__ import annotations

from openpaisdk.commands.wording import file_size, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context
    from openpaisdk.job import Job
    from openpaisdk.workspace.shipping import Plan


def source_option(parser: ArgumentParser) -> None:
    """Which files go along."""
    parser.add_argument(
        "-s",
        "--source",
        action="append",
        default=[],
        metavar="PATH",
        help="file, folder or glob to send along",
    )


def source_options(parser: ArgumentParser) -> None:
    """The same, and whether and how much."""
    source_option(parser)
    parser.add_argument("--no-source", action="store_true", help="send no code along")
    parser.add_argument("--source-limit", type=float, metavar="MB", help="most code to send along (300)")


def require_one_choice(args: Namespace) -> None:
    """Code is either named or left at home."""
    if args.no_source and args.source:
        from openpaisdk.errors import UsageError

        raise UsageError(
            f"--no-source and -s {args.source[0]} exclude each other", hint="leave one of the two out"
        )


def ship_sources(job: Job, args: Namespace, context: Context, *, named: bool) -> None:
    """Sends the files that `-s` names (the current folder without it) and notes them in the job.

    A name that a person chose (`named`) may be taken, which is looked up before anything goes out.
    """
    if args.no_source:
        return
    try:
        _ship(job, args, context, named)
    except KeyboardInterrupt:
        context.interrupted("stopped; nothing was submitted")
        raise


def _ship(job: Job, args: Namespace, context: Context, named: bool) -> None:
    from openpaisdk.job.code import send_code

    def show_plan(plan: Plan) -> None:
        if named and plan.files:
            _refuse_taken(job.name, context)
        context.note = f"code {number(plan.files, 'file')}, {file_size(plan.bytes)}"
        context.status(f"{job.name}  {context.note}")

    def show_progress(sent: int, total: int) -> None:
        context.status(f"{job.name}  {context.note} · sent {file_size(sent)} of {file_size(total)}")

    shipped = send_code(
        job.spec,
        context.cluster(),
        args.source,
        required=bool(args.source),
        limit_mb=args.source_limit,
        on_plan=show_plan,
        on_sent=show_progress,
    )
    if shipped:
        return
    context.note = ""
    if not args.source and _misses_its_files(job):
        context.say("the home folder is never sent as a whole, so no code goes along; name files with -s")


def _refuse_taken(name: str, context: Context) -> None:
    """The server would say the same, but only after all the code has been sent."""
    from openpaisdk.errors import ConflictError, NotFoundError

    cluster = context.cluster()
    try:
        cluster.job(name)
    except NotFoundError:
        return
    raise ConflictError(
        f"Job {cluster.user}~{name} already exists.",
        code="ConflictJobError",
        hint="names are used once, even by finished jobs; choose another with -j",
    )


def _misses_its_files(job: Job) -> bool:
    """Whether a command names a file of the current folder, which is one that is never sent."""
    from openpaisdk.job.code import names_local_files
    from openpaisdk.workspace import is_forbidden

    lines = [line for role in job.spec["taskRoles"].values() for line in role["commands"]]
    return is_forbidden(".") and any(map(names_local_files, lines))
