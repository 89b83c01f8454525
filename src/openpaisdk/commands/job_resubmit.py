"""`opai job resubmit`: the same code, config and notebook again with other resources, here or on another cluster."""

from __future__ import annotations

from openpaisdk.commands.job_sub import pairs, resource_options
from openpaisdk.commands.submitting import submit_jobs, submit_options, submit_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Result
    from openpaisdk.job import Job


def resubmit_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="NAME, or USER~NAME; inside a job: that job without it")
    parser.add_argument("--from", dest="source_alias", metavar="ALIAS", help="cluster that has the job, where it is not -a's")
    parser.add_argument("-j", "--job-name", metavar="NAME", help="name of the new job; made from the old one without it")
    parser.add_argument("-i", "--image", metavar="IMAGE", help="another container image")
    parser.add_argument("-n", "--instances", type=int, metavar="N", help="another number of tasks")
    parser.add_argument("-t", "--task-role", metavar="ROLE", help="change only this role; all of them without it")
    parser.add_argument("--vc", metavar="VC", help="another virtual cluster")
    parser.add_argument("--secret", action="append", default=[], metavar="K=V", help="a secret, which cannot be read back")
    parser.add_argument("--set", action="append", default=[], dest="assignments", metavar="PATH=VALUE", help="change a value")
    resource_options(parser)
    submit_options(parser)


def resubmit_run(args: Namespace, context: Context) -> Result:
    import os

    from openpaisdk.errors import UsageError
    from openpaisdk.job import Job

    name = args.job or os.environ.get("PAI_JOB_NAME")
    if not name:
        raise UsageError("which job?", hint="opai job resubmit JOB; opai job list shows them")
    target = context.cluster()
    source = context.cluster(args.source_alias) if args.source_alias else target
    old = Job.from_cluster(name, source)
    twin = old.clone(args.job_name)
    change_resources(twin, args)
    for assignment in args.assignments:
        twin.set(assignment)
    restore_secrets(old, twin, pairs(args.secret, "--secret", "NAME=VALUE"))
    if source is not target and not args.dry_run:
        carry_code(twin, source, target, context)
    return submit_result(submit_jobs([twin], args, context)[0], args)


def change_resources(job: Job, args: Namespace) -> None:
    from openpaisdk.config import megabytes
    from openpaisdk.errors import NotFoundError

    roles: dict[str, Any] = job.spec["taskRoles"]
    if args.task_role and args.task_role not in roles:
        raise NotFoundError(f"the job has no task role `{args.task_role}`", hint=f"it has: {', '.join(roles)}")
    for name, role in roles.items():
        if args.task_role in (None, name):
            wanted = {"gpu": args.gpu, "cpu": args.cpu, "memoryMB": megabytes(args.mem) if args.mem else None}
            role["resourcePerInstance"].update({key: value for key, value in wanted.items() if value is not None})
            if args.instances:
                role["instances"] = args.instances
            if args.image:
                role["dockerImage"] = job._image(args.image)
    if args.vc:
        job.spec.setdefault("defaults", {})["virtualCluster"] = args.vc


def restore_secrets(old: Job, twin: Job, given: dict[str, str]) -> None:
    """Secrets come back masked; a notebook's token is made anew, others have to be given again."""
    from openpaisdk.errors import UsageError

    masked = old.spec.get("secrets")
    if not masked:
        return
    ours = (old.spec.get("extras") or {}).get("openpaisdk") or {}
    wanted = set(masked) if isinstance(masked, dict) else _named_secrets(old.spec)
    secrets = dict(given)
    if "jupyter" in wanted and (ours.get("notebook") or {}).get("mode") == "interactive":
        import secrets as random

        secrets.setdefault("jupyter", random.token_urlsafe(24))
    missing = sorted(wanted - set(secrets))
    if missing:
        raise UsageError(
            f"the secrets of {old.name} cannot be read back from the cluster: {', '.join(missing)}",
            hint="give them again with " + " ".join(f"--secret {name}=VALUE" for name in missing),
        )
    twin.spec["secrets"] = secrets


def _named_secrets(spec: dict[str, Any]) -> set[str]:
    import json
    import re

    return set(re.findall(r"<%\s*\$secrets\.(\w+)", json.dumps(spec)))


def carry_code(job: Job, source: Any, target: Any, context: Context) -> None:
    """Another cluster does not have the code yet: it is fetched from the first and sent to the second."""
    from openpaisdk import workspace

    ours = (job.spec.get("extras") or {}).get("openpaisdk") or {}
    manifest = (ours.get("code") or {}).get("manifest")
    if manifest:
        context.status(f"{job.name}  carrying the code to {target.alias}")
        workspace.carry_source(source, target, manifest)
