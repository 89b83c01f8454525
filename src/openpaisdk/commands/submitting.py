"""What `sub`, `submit` and `clone` share: check, show or send jobs, then follow or wait for them."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View
from openpaisdk.commands.wording import outcome_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.job import Job


def submit_options(parser: ArgumentParser) -> None:
    """The options of every command that submits."""
    parser.add_argument("--follow", action="store_true", help="show what the job prints until it has ended")
    parser.add_argument(
        "--wait", action="store_true", help="wait until it has ended; the exit code is its outcome"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be sent, and send nothing")


def set_option(parser: ArgumentParser) -> None:
    """The option of every command that sends an existing job spec."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="PATH=VALUE",
        help="change a value first, such as taskRoles.worker.instances=4; may be repeated",
    )


def submit_jobs(
    jobs: Sequence[Job],
    args: Namespace,
    context: Context,
    *,
    on_submitted: Callable[[Job], Any] | None = None,
) -> list[dict[str, Any]]:
    """Check all, then send one after the other; a record of each, with its outcome where it was awaited."""
    require_valid_jobs(jobs)
    if args.dry_run:
        return [masked(job) for job in jobs]
    from openpaisdk.commands.fitting import refuse_what_never_fits

    cluster = context.cluster()
    for job in jobs:
        refuse_what_never_fits(job.spec, cluster)
    records = []
    for job in jobs:
        job.submit(cluster)
        if on_submitted is not None:
            on_submitted(job)
        records.append(
            {"name": job.name, "user": job.user, "cluster": cluster.config.alias, "link": job.link}
        )
    if args.follow or args.wait:
        from openpaisdk.commands.following import see_to_the_end

        for job, record in zip(jobs, records):
            record.update(see_to_the_end(job, context, show_log=args.follow))
    else:
        for job in jobs:
            context.say(f"{job.name} submitted{context.then(f'opai job logs -f {job.name}')}")
    return records


def submit_result(data: Any, args: Namespace) -> Result:
    """A dry run is shown as a job file; a submitted job by its name, unless its log was on the screen."""
    if args.dry_run:
        return Result(data, View("text", write=_job_files, name="name"))
    records = data if isinstance(data, list) else [data]
    states = [record["state"] for record in records if "state" in record]
    view = View("nothing", name="name") if args.follow else View("text", write=_names, name="name")
    return Result(data, view, exit_code=outcome_code(states))


def require_valid_jobs(jobs: Sequence[Job]) -> None:
    """One error with every problem of every job."""
    from openpaisdk.errors import InvalidJobError

    problems = [problem for job in jobs for problem in job.check()]
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise InvalidJobError(f"nothing was submitted; {count} in the job", problems=problems)


def masked(job: Job) -> dict[str, Any]:
    from openpaisdk.protocol import mask_secrets

    shown: dict[str, Any] = mask_secrets(job.spec)
    return shown


def _job_files(data: Any) -> str:
    from openpaisdk.protocol import dump

    return "---\n".join(dump(spec, "yaml") for spec in (data if isinstance(data, list) else [data]))


def _names(data: Any) -> str:
    return "\n".join(str(record["name"]) for record in (data if isinstance(data, list) else [data]))
