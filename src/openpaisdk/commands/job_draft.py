"""`opai job create` and `task`: a job made step by step, kept in `.openpai/jobs/<job>/`."""

from __future__ import annotations

from argparse import REMAINDER
from pathlib import Path

from openpaisdk.commands.job_sub import (
    note_runtime_options,
    port_counts,
    resource_options,
    runtime_options,
)
from openpaisdk.commands.result import Result, View
from openpaisdk.commands.sources import source_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.job import Job

DRAFT = "draft.json"
CONFIG = "config.json"


def create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-j", "--job-name", required=True, metavar="NAME", help="name of the job")
    parser.add_argument("-i", "--image", metavar="IMAGE", help="container image of its task roles")
    parser.add_argument(
        "-p", "--package", action="append", default=[], metavar="PACKAGE", help="pip package to install"
    )
    source_option(parser)
    runtime_options(parser)
    parser.add_argument("--vc", metavar="VC", help="virtual cluster (default)")
    parser.add_argument(
        "--replace", action="store_true", help="begin again where a draft of this name exists"
    )


def create_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import setting
    from openpaisdk.errors import ConflictError
    from openpaisdk.job import JobSpec

    folder = job_folder(args.job_name)
    if (folder / DRAFT).exists() and not args.replace:
        raise ConflictError(
            f"a job {args.job_name} has already been begun in {folder}",
            hint="go on with `opai job task`, or begin again with --replace",
        )
    job = JobSpec(args.job_name, extras={"submitFrom": "openpaisdk"})
    wanted_vc = setting("vc", args.vc)
    if wanted_vc:
        job.spec["defaults"] = {"virtualCluster": wanted_vc}
    note_runtime_options(job, args)
    draft = {
        "spec": job.spec,
        "cluster": args.cluster_alias,
        "image": args.image,
        "packages": args.package,
        "sources": args.source,
    }
    _save(args.job_name, draft)
    (folder.parent / "current").write_text(args.job_name + "\n", encoding="utf-8")
    context.say(f"job {args.job_name} begun in {folder} · opai job task -t ROLE -- COMMAND adds a task role")
    return Result({"name": args.job_name, "folder": str(folder)}, View("nothing", name="name"))


def task_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-t", "--task-role", required=True, metavar="ROLE", help="name of the task role")
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="of which job; the one begun last without it"
    )
    parser.add_argument("-n", "--instances", type=int, metavar="N", help="tasks of this role (1)")
    parser.add_argument(
        "-i", "--image", metavar="IMAGE", help="container image, where it differs from the job's"
    )
    resource_options(parser)
    parser.add_argument("words", nargs=REMAINDER, metavar="COMMAND", help="after --, or as it stands")


def task_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import megabytes
    from openpaisdk.errors import UsageError
    from openpaisdk.job import JobSpec
    from openpaisdk.job.words import command_text, install_lines

    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise UsageError(
            "there is no command to run", hint="opai job task -t ROLE [options] -- python train.py"
        )
    name, draft = read_draft(args.job_name)
    job = JobSpec(name)
    job.spec = draft["spec"]
    known = args.task_role in job.spec.get("taskRoles", {})
    job.task_role(
        args.task_role,
        [*install_lines(draft["packages"]), command_text(words)],
        image=args.image or draft["image"],
        gpu=args.gpu,
        cpu=args.cpu,
        mem=megabytes(args.mem) if args.mem else None,
        instances=args.instances,
        ports=port_counts(args.port),
    )
    _save(name, draft)
    context.say(
        f"task role {args.task_role} {'replaced' if known else 'added'} · opai job submit sends {name}"
    )
    return Result({"name": name, "taskRoles": job.spec["taskRoles"]}, View("nothing", name="name"))


def job_folder(name: str) -> Path:
    """`.openpai/jobs/<job>`; a name that is no job name could lead elsewhere and is refused."""
    from openpaisdk.errors import UsageError
    from openpaisdk.protocol.names import safe_name

    if name != safe_name(name):
        raise UsageError(f"{name!r} cannot be the name of a job", hint="use letters, digits, - and _")
    return Path(".openpai", "jobs", name)


def read_draft(name: str | None) -> tuple[str, dict[str, Any]]:
    """The draft of this name, or the one begun last."""
    from openpaisdk.config import read_json
    from openpaisdk.errors import NotFoundError

    current = Path(".openpai", "jobs", "current")
    if name is None:
        if not current.exists():
            raise NotFoundError(
                "no job has been begun in this folder",
                hint="opai job create -j NAME, or opai job submit --config FILE",
            )
        name = current.read_text(encoding="utf-8").strip()
    draft = read_json(job_folder(name) / DRAFT)
    if draft is None:
        raise NotFoundError(f"no job {name} has been begun in this folder", hint=f"opai job create -j {name}")
    return name, draft


def draft_job(name: str | None) -> tuple[Job, dict[str, Any]]:
    """The draft as a job ready to be checked, with its other settings."""
    from openpaisdk.errors import UsageError
    from openpaisdk.job import Job

    name, draft = read_draft(name)
    if not draft["spec"].get("taskRoles"):
        raise UsageError(f"job {name} has no task role yet", hint="opai job task -t ROLE -- COMMAND")
    return Job.from_dict(draft["spec"]), draft


def dump_config(job: Job) -> Path:
    """Writes `config.json` as it will be sent."""
    from openpaisdk.config import write_private

    target = job_folder(job.name) / CONFIG
    write_private(target, job.to_json())
    return target


def forget_draft(name: str) -> None:
    """The draft was submitted: its config stays, and the next `opai job submit` does not send it again."""
    (job_folder(name) / DRAFT).unlink(missing_ok=True)
    current = Path(".openpai", "jobs", "current")
    if current.exists() and current.read_text(encoding="utf-8").strip() == name:
        current.unlink()


def _save(name: str, draft: dict[str, Any]) -> None:
    import json

    from openpaisdk.config import write_private

    write_private(job_folder(name) / DRAFT, json.dumps(draft, indent=2) + "\n")
