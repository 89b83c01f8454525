"""`opai job why`: why a job waits or failed, in words, and what to do."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.core import Cluster


def why_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="NAME, or USER~NAME")


def why_run(args: Namespace, context: Context) -> Result:
    cluster = context.cluster()
    return Result(
        [_why(name, cluster) for name in args.jobs], View("text", write=_lines, name="job", prose=True)
    )


def _why(name: str, cluster: Cluster) -> dict[str, Any]:
    """The server's own words where it has them, else words made from what any OpenPAI cluster tells."""
    from openpaisdk.commands.explaining import explain

    detail = cluster.job(name)
    if "why" in cluster.extensions:
        return cluster.why(name)
    waiting = detail["jobStatus"]["state"] == "WAITING"
    return explain(
        detail,
        config=_or_empty(cluster, "job_config", name) if waiting else {},
        events=_or_empty(cluster, "events", name),
        virtual_clusters=_or_empty(cluster, "virtual_clusters") if waiting else {},
    )


def _or_empty(cluster: Cluster, method: str, *args: str) -> Any:
    """Old servers lack some of this; the explanation is then a little shorter."""
    from openpaisdk.errors import OpenPAIError

    try:
        return getattr(cluster, method)(*args)
    except OpenPAIError:
        return {}


def _lines(rows: Any) -> str:
    lines = []
    for row in rows:
        lines.append(row["text"])
        lines += [f"  {line}" for line in (row.get("hint") or "").splitlines()]
    return "\n".join(lines)
