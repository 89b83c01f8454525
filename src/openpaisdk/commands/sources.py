"""The one place where local code joins a job before it is submitted."""

from __future__ import annotations

from openpaisdk.commands.wording import file_size, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context
    from openpaisdk.core import Cluster
    from openpaisdk.job import Job


def source_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-s",
        "--source",
        action="append",
        default=[],
        metavar="PATH",
        help="file, folder or glob to send along",
    )
    parser.add_argument("--no-source", action="store_true", help="send no code along")
    parser.add_argument("--source-limit", type=float, metavar="MB", help="most code to send along (300)")


def ship_sources(job: Job, args: Namespace, context: Context) -> None:
    """Sends the files that `-s` names (the current folder without it) and notes them in the job."""
    if args.no_source:
        return
    cluster = context.cluster()
    if not keeps_files(cluster):
        if args.source:
            from openpaisdk.errors import UsageError

            raise UsageError(
                f"-s {args.source[0]}: cluster {cluster.config.alias} has no place for code",
                hint="put the code into the image or a storage of the cluster, and submit with --no-source",
            )
        return
    from openpaisdk.workspace import DEFAULT_LIMIT_MB, ship_source

    def show_progress(sent: int, total: int) -> None:
        context.status(f"{job.name}  code {file_size(sent)} of {file_size(total)}")

    limit = DEFAULT_LIMIT_MB if args.source_limit is None else args.source_limit
    shipped = ship_source(cluster, args.source, limit_mb=limit, on_sent=show_progress)
    if shipped["manifest"]:
        job.spec.setdefault("extras", {}).setdefault("openpaisdk", {})["code"] = {
            "manifest": shipped["manifest"]
        }
        context.note = f"code {number(shipped['files'], 'file')}, {file_size(shipped['bytes'])}"


def keeps_files(cluster: Cluster) -> bool:
    """Whether the server takes code by content; the first answer of any server tells."""
    if cluster.config.alias == "local":
        return True
    if not cluster.extensions:
        cluster.info()
    return "files" in cluster.extensions
