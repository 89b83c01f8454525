"""`opai job resubmit`: the same code, config and notebook again with other resources, here or elsewhere."""

from __future__ import annotations

import os

from openpaisdk.commands.job_sub import pairs, port_counts, resource_options
from openpaisdk.commands.submitting import require_valid_jobs, submit_jobs, submit_options, submit_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Result
    from openpaisdk.core import Cluster
    from openpaisdk.job import Job


def resubmit_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "job", nargs="?", metavar="JOB", help="NAME, or USER~NAME; inside a job: that job without it"
    )
    parser.add_argument("--from", dest="source_alias", metavar="ALIAS", help="cluster that has the job")
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="name of the new job; made from the old one without it"
    )
    parser.add_argument("-i", "--image", metavar="IMAGE", help="another container image")
    parser.add_argument("-n", "--instances", type=int, metavar="N", help="another number of tasks")
    parser.add_argument(
        "-t", "--task-role", metavar="ROLE", help="change only this role; all of them without it"
    )
    parser.add_argument("--vc", metavar="VC", help="another virtual cluster")
    parser.add_argument(
        "--mode", choices=("batch", "interactive"), help="run a notebook job in another way than before"
    )
    parser.add_argument(
        "--secret", action="append", default=[], metavar="K=V", help="a secret, which cannot be read back"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="assignments", metavar="PATH=VALUE", help="change a value"
    )
    resource_options(parser)
    submit_options(parser)
    parser.epilog = (
        "The new job goes to the cluster of -a. JOB is looked for on the cluster of --from; without it on\n"
        "the default one, and where that has no such job, on the one of -a. Run inside that very job, its\n"
        "files go as they are now in its working folder."
    )


def resubmit_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import megabytes
    from openpaisdk.errors import UsageError

    name = args.job or os.environ.get("PAI_JOB_NAME")
    if not name:
        raise UsageError("which job?", hint="opai job resubmit JOB; opai job list shows them")
    target = context.cluster()
    old = find_job(name, args.source_alias, context)
    twin = old.clone(args.job_name)
    twin.resize(
        args.task_role,
        image=args.image,
        gpu=args.gpu,
        cpu=args.cpu,
        mem=megabytes(args.mem) if args.mem else None,
        instances=args.instances,
        ports=port_counts(args.port),
    )
    if args.vc:
        twin.spec.setdefault("defaults", {})["virtualCluster"] = args.vc
    if args.mode:
        change_mode(twin, args.mode)
    for assignment in args.assignments:
        twin.set(assignment)
    token = restore_secrets(old, twin, pairs(args.secret, "--secret", "NAME=VALUE"))
    require_valid_jobs([twin])
    if not args.dry_run:
        bring_code(old, twin, target, context)

    def remember_token(job: Job) -> None:
        if token is not None:
            from openpaisdk.notebook.tokens import remember

            remember(target.config.alias, job.user or "", job.name, token)

    return submit_result(submit_jobs([twin], args, context, on_submitted=remember_token)[0], args)


def find_job(name: str, alias: str | None, context: Context) -> Job:
    """The job where the person meant it; an error says which clusters were asked."""
    from openpaisdk.errors import NotFoundError
    from openpaisdk.job import Job

    places = [context.cluster(alias)] if alias else [context.default_cluster(), context.cluster()]
    asked: list[str] = []
    for cluster in places:
        if cluster.config.alias in asked:
            continue
        asked.append(cluster.config.alias)
        try:
            return Job.from_cluster(name, cluster)
        except NotFoundError as error:
            if len(places) == 1 or places[0] is places[1]:
                raise
            hint = error.hint
    raise NotFoundError(
        f"there is no job {name} on {' or '.join(asked)}",
        hint=hint if len(asked) == 1 else "name the cluster that has it with --from ALIAS",
    )


def change_mode(job: Job, mode: str) -> None:
    """Executes a notebook that a person worked in, or opens one that was executed."""
    from openpaisdk.errors import UsageError
    from openpaisdk.notebook.submission import PORT, ROLE, SECRET, commands

    ours = (job.spec.get("extras") or {}).get("openpaisdk") or {}
    notebook = ours.get("notebook")
    if not notebook or ROLE not in job.spec["taskRoles"]:
        raise UsageError(
            f"--mode {mode}: the job was not made of a notebook",
            hint="leave --mode out, or submit a notebook",
        )
    if "wrapped" in ours:
        raise UsageError(
            f"--mode {mode}: the notebook travelled inside the text of the job, which cannot be changed",
            hint=f"submit it again: opai job notebook {notebook['file']} --mode {mode}",
        )
    role = job.spec["taskRoles"][ROLE]
    role["commands"] = commands(mode, notebook["file"], notebook["packages"], notebook["env"])
    notebook["mode"] = mode
    ports = role["resourcePerInstance"].setdefault("ports", {})
    if mode == "interactive":
        ours["kind"] = mode
        ports[PORT] = 1
        job.spec["secrets"] = {**_mapping(job.spec.get("secrets")), SECRET: ""}
    else:
        ours.pop("kind", None)
        ports.pop(PORT, None)
        job.spec["secrets"] = {name: "" for name in _mapping(job.spec.get("secrets")) if name != SECRET}
        if not job.spec["secrets"]:
            del job.spec["secrets"]
    if not ports:
        del role["resourcePerInstance"]["ports"]


def restore_secrets(old: Job, twin: Job, given: dict[str, str]) -> str | None:
    """Secrets come back masked: a Jupyter gets a new token (returned); others have to be given again."""
    from openpaisdk.errors import UsageError
    from openpaisdk.notebook.submission import SECRET

    masked = twin.spec.get("secrets")
    if not masked and not given:
        return None
    ours = (twin.spec.get("extras") or {}).get("openpaisdk") or {}
    wanted = set(masked) if isinstance(masked, dict) else named_secrets(twin.spec)
    secrets, token = dict(given), None
    if SECRET in wanted and ours.get("kind") == "interactive":
        from secrets import token_urlsafe

        token = secrets[SECRET] = token_urlsafe(24)
    missing = sorted(wanted - set(secrets))
    if missing:
        raise UsageError(
            f"the secrets of {old.name} cannot be read back from the cluster: {', '.join(missing)}",
            hint="give them again with " + " ".join(f"--secret {name}=VALUE" for name in missing),
        )
    twin.spec["secrets"] = secrets
    return token


def named_secrets(spec: dict[str, Any]) -> set[str]:
    """The secrets that a job refers to, where the cluster only tells that there are some."""
    import json
    import re

    return set(re.findall(r"<%\s*\$secrets\.(\w+)", json.dumps(spec)))


def bring_code(old: Job, twin: Job, target: Cluster, context: Context) -> None:
    """Inside the job itself its files go as they are now; another cluster gets the files of the first."""
    ours = (twin.spec.get("extras") or {}).get("openpaisdk") or {}
    manifest = (ours.get("code") or {}).get("manifest")
    folder = os.environ.get("PAI_WORK_DIR")
    if folder and manifest and os.environ.get("PAI_JOB_NAME") == f"{old.user}~{old.name}":
        from openpaisdk.job.code import send_code
        from openpaisdk.notebook.running import save_if_running

        save_if_running()
        context.status(f"{twin.name}  sending the files of {old.name}")
        del ours["code"]
        send_code(twin.spec, target, ["."], cwd=folder)
    elif manifest and old.cluster is not target:
        from openpaisdk.job.code import keeps_files
        from openpaisdk.workspace import carry_source

        if old.cluster is None or not keeps_files(target):
            from openpaisdk.errors import UsageError

            raise UsageError(
                f"the code of {old.name} cannot be carried to {target.config.alias},"
                " whose server does not keep code by its content",
                hint=f"submit from the folder that has it: opai job sub -a {target.config.alias} COMMAND"
                " sends it through the workspace of the cluster or, when small, in the text of the job",
            )
        context.status(f"{twin.name}  carrying the code to {target.config.alias}")
        carry_source(old.cluster, target, manifest)


def _mapping(secrets: Any) -> dict[str, Any]:
    return secrets if isinstance(secrets, dict) else {}
