"""`opai job sub` (also `fast`): one command becomes a job."""

from __future__ import annotations

from argparse import REMAINDER

from openpaisdk.commands.submitting import require_valid_jobs, submit_jobs, submit_options, submit_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Result
    from openpaisdk.job import Job, JobSpec


def sub_arguments(parser: ArgumentParser) -> None:
    from openpaisdk.commands.sources import source_options

    parser.add_argument("-i", "--image", metavar="IMAGE", help="container image")
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="name of the job; made from the command without it"
    )
    parser.add_argument("-n", "--instances", type=int, metavar="N", help="tasks that run the command (1)")
    resource_options(parser)
    parser.add_argument("-t", "--task-role", metavar="ROLE", help="name of the task role (worker)")
    parser.add_argument(
        "-p", "--package", action="append", default=[], metavar="PACKAGE", help="pip package to install"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="environment variable for the command"
    )
    parser.add_argument("--vc", metavar="VC", help="virtual cluster (default)")
    parser.add_argument("--priority", metavar="CLASS", help="oppo, test or prod")
    parser.add_argument("--retries", type=int, metavar="N", help="times a failed job is tried again (0)")
    source_options(parser)
    runtime_options(parser)
    submit_options(parser)
    parser.add_argument("words", nargs=REMAINDER, metavar="COMMAND", help="after --, or as it stands")
    parser.epilog = (
        "Options of opai stand before the command; everything after its first word belongs to it.\n"
        "One quoted string is shell text: opai job sub 'cd src && python train.py'"
    )


def resource_options(parser: ArgumentParser) -> None:
    """What one task gets."""
    parser.add_argument("--gpu", type=int, metavar="N", help="GPUs of each task (0)")
    parser.add_argument("--cpu", type=int, metavar="N", help="CPUs of each task (1)")
    parser.add_argument("--mem", metavar="MB", help="memory of each task, in MB or as 8GB")
    parser.add_argument(
        "--port", action="append", default=[], metavar="LABEL=N", help="ports to allot under this label"
    )


def runtime_options(parser: ArgumentParser) -> None:
    """What happens around the program inside the job."""
    parser.add_argument(
        "--save",
        action="append",
        default=[],
        metavar="PATTERN",
        help="files to keep as outputs however a task ends, such as 'models/*.pt'; may be repeated",
    )
    parser.add_argument(
        "--callbacks",
        action="store_true",
        help="leave the deployment's commands to the program's start and end callbacks",
    )
    parser.add_argument("--disable-sdk-install", action="store_true", help="leave our runtime out of the job")


def note_runtime_options(job: JobSpec, args: Namespace) -> None:
    """Puts what `runtime_options` read into the job."""
    if args.save:
        job.save_outputs(*args.save)
    if args.callbacks:
        job.use_callbacks()
    if args.disable_sdk_install:
        job.use_runtime(False)


def sub_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.commands.sources import require_one_choice, ship_sources

    require_one_choice(args)
    job = job_from_words(args)
    require_valid_jobs([job])
    if not args.dry_run:
        ship_sources(job, args, context, named=bool(args.job_name))
    return submit_result(submit_jobs([job], args, context)[0], args)


def job_from_words(args: Namespace) -> Job:
    """The job that the options and the command describe."""
    from openpaisdk.config import megabytes, setting
    from openpaisdk.errors import UsageError
    from openpaisdk.job import Job

    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise UsageError(
            "there is no command to run", hint=f"opai job {args.verb} [options] -- python train.py"
        )
    job = Job.from_command(
        words,
        name=args.job_name,
        role=setting("task-role", args.task_role),
        image=args.image,
        gpu=args.gpu,
        cpu=args.cpu,
        mem=megabytes(args.mem) if args.mem else None,
        instances=args.instances,
        ports=port_counts(args.port),
        env=pairs(args.env, "--env", "NAME=VALUE"),
        packages=args.package,
        vc=args.vc,
        source=(),
    )
    retries, priority = setting("retries", args.retries), setting("priority", args.priority)
    if retries:
        job.spec["jobRetryCount"] = retries
    if priority:
        job.spec.setdefault("extras", {})["hivedScheduler"] = {"jobPriorityClass": priority}
    note_runtime_options(job, args)
    return job


def pairs(texts: Iterable[str], option: str, shape: str) -> dict[str, str]:
    """`K=V` texts as a mapping; only the first `=` splits."""
    from openpaisdk.errors import UsageError

    found = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name.strip():
            raise UsageError(f"{option}: {text!r} says nothing", hint=f"write it as {option} {shape}")
        found[name.strip()] = value
    return found


def port_counts(texts: Iterable[str]) -> dict[str, int]:
    from openpaisdk.errors import UsageError

    found = {}
    for label, count in pairs(texts, "--port", "LABEL=COUNT").items():
        if not count.isdigit() or int(count) < 1:
            raise UsageError(f"--port {label}: expected a count of at least 1, got {count!r}")
        found[label] = int(count)
    return found
