"""`opai job submit`: job files, or the job begun with `create` and `task`."""

from __future__ import annotations

from openpaisdk.commands.submitting import (
    require_valid_jobs,
    set_option,
    submit_jobs,
    submit_options,
    submit_result,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Result
    from openpaisdk.job import Job


def submit_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="job files, v2 YAML or JSON or v1 JSON; `-` is standard input",
    )
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="another name for the job, or which begun job to send"
    )
    set_option(parser)
    parser.add_argument("--unique", action="store_true", help="make the name unique with a random end")
    submit_options(parser)


def submit_run(args: Namespace, context: Context) -> Result:
    return _submit_files(args, context) if args.config else _submit_draft(args, context)


def _submit_files(args: Namespace, context: Context) -> Result:
    from openpaisdk.errors import ConflictError, UsageError
    from openpaisdk.job import Job

    if args.job_name and len(args.config) > 1:
        raise UsageError(f"-j {args.job_name} cannot be the name of {len(args.config)} jobs")
    jobs = [_edited(Job.from_file(path), args) for path in args.config]
    for job in jobs:
        _warn(job, context)
    try:
        return submit_result(submit_jobs(jobs, args, context), args)
    except ConflictError as error:
        error.hint = "choose another name with -j, or let --unique make one"
        raise


def _warn(job: Job, context: Context) -> None:
    """A mistyped parameter is no error on OpenPAI: the command would run with the reference as it stands."""
    if not job.check():
        for problem in job.cautions():
            if problem.keyword == "reference":
                context.say(f"warning: {problem}")


def _submit_draft(args: Namespace, context: Context) -> Result:
    from argparse import Namespace as Options

    from openpaisdk.commands.job_draft import draft_job, dump_config, forget_draft
    from openpaisdk.commands.sources import ship_sources

    job, draft = draft_job(args.job_name)
    begun_as = job.name
    args.job_name = None
    _edited(job, args)
    require_valid_jobs([job])
    if not args.dry_run:
        if draft["cluster"] and not args.cluster_alias:
            context.alias = draft["cluster"]
        choice = Options(source=draft["sources"], no_source=not draft["sources"], source_limit=None)
        ship_sources(job, choice, context, named=not args.unique)
        dump_config(job)
    records = submit_jobs([job], args, context)
    if not args.dry_run:
        forget_draft(begun_as)
    return submit_result(records, args)


def _edited(job: Job, args: Namespace) -> Job:
    from openpaisdk.protocol import unique_name

    for assignment in args.assignments:
        job.set(assignment)
    if args.job_name:
        job.spec["name"] = args.job_name
    if args.unique:
        job.spec["name"] = unique_name(str(job.spec.get("name") or "job"))
    return job
