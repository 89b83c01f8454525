"""`opai job stop|delete|clone`: what is done to jobs that are already there."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View
from openpaisdk.commands.submitting import set_option, submit_jobs, submit_options, submit_result
from openpaisdk.commands.wording import ENDED, said_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from openpaisdk.commands.context import Context


def stop_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="NAME, or USER~NAME")


def stop_run(args: Namespace, context: Context) -> Result:
    cluster = context.cluster()

    def stop(name: str) -> str:
        state = str(cluster.job(name)["jobStatus"].get("state"))
        cluster.stop(name)
        return said_state(state if state in ENDED else "STOPPING")

    return _each(args.jobs, stop, context)


def delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="NAME, or USER~NAME; must have ended")


def delete_run(args: Namespace, context: Context) -> Result:
    cluster = context.cluster()

    def delete(name: str) -> str:
        cluster.delete_job(name)
        return "deleted with its files"

    return _each(args.jobs, delete, context)


def _each(names: list[str], act: Callable[[str], str], context: Context) -> Result:
    """Does it to every job and says so; the first error comes after the others had their turn."""
    from openpaisdk.errors import OpenPAIError

    done: list[str] = []
    failed: OpenPAIError | None = None
    for name in names:
        try:
            said = act(name)
        except OpenPAIError as error:
            if failed is not None:
                context.say(f"error: {error.message}")
            failed = failed or error
            continue
        done.append(name)
        context.say(f"{name} {said}")
    if failed is not None:
        raise failed
    return Result(done, View("nothing"))


def clone_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="NAME, or USER~NAME")
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="name of the new job; made from the old one without it"
    )
    set_option(parser)
    submit_options(parser)


def clone_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.errors import UsageError
    from openpaisdk.job import Job

    twin = Job.from_cluster(args.job, context.cluster()).clone(args.job_name)
    for assignment in args.assignments:
        twin.set(assignment)
    if isinstance(twin.spec.get("secrets"), str):
        raise UsageError(
            f"the secrets of {args.job} cannot be read back from the cluster",
            hint="give them again with --set secrets.NAME=VALUE, or submit the job file with --unique",
        )
    return submit_result(submit_jobs([twin], args, context)[0], args)
