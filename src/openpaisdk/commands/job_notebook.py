"""`opai job notebook`: a notebook becomes a job."""

from __future__ import annotations

from pathlib import Path

from openpaisdk.commands.job_sub import pairs, resource_options
from openpaisdk.commands.result import Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context


def notebook_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("notebook", metavar="NB.ipynb", help="the notebook")
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="name of the job; made from the notebook's without it"
    )
    parser.add_argument(
        "--mode",
        choices=("batch", "script", "interactive"),
        default="batch",
        help="execute it, run it as plain Python, or open Jupyter in the job (batch)",
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="value for its `parameters` cell"
    )
    parser.add_argument("-i", "--image", metavar="IMAGE", help="container image")
    parser.add_argument(
        "-p", "--package", action="append", default=[], metavar="PACKAGE", help="pip package to install"
    )
    parser.add_argument(
        "-s",
        "--source",
        action="append",
        default=[],
        metavar="PATH",
        help="file or folder beside the notebook to send along",
    )
    resource_options(parser)
    parser.add_argument("--follow", action="store_true", help="show its progress until it has ended")
    parser.add_argument(
        "--wait", action="store_true", help="wait until it has ended; the exit code is its outcome"
    )


def notebook_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.commands.submitting import submit_result
    from openpaisdk.config import megabytes
    from openpaisdk.notebook import send_notebook

    sent = send_notebook(
        Path(args.notebook),
        mode=args.mode,
        parameters=parameter_values(args.param),
        packages=args.package,
        name=args.job_name,
        sources=args.source,
        cluster=context.cluster(),
        image=args.image,
        gpu=args.gpu,
        cpu=args.cpu,
        mem=megabytes(args.mem) if args.mem else None,
    )
    job = sent.job
    record: dict[str, Any] = {"name": job.name, "user": job.user, "mode": args.mode, "link": job.link}
    if args.follow or args.wait:
        from openpaisdk.commands.following import see_to_the_end

        record.update(see_to_the_end(job, context, show_log=args.follow))
    elif args.mode == "interactive":
        context.say(f"{job.name} submitted · opai job connect {job.name}")
    else:
        context.say(
            f"{job.name} submitted · opai job logs -f {job.name} · opai output download -j {job.name}"
        )
    args.dry_run = False
    return submit_result(record, args)


def parameter_values(texts: list[str]) -> dict[str, Any]:
    """`lr=0.01` typed like YAML: numbers, true, lists; everything else is text."""
    from openpaisdk.protocol import set_value

    found: dict[str, Any] = {}
    for name, value in pairs(texts, "--param", "lr=0.01").items():
        holder: dict[str, Any] = {}
        set_value(holder, f"value={value}")
        found[name] = holder["value"]
    return found


def connect_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="an interactive notebook job, NAME or USER~NAME")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="local port; a free one without it")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="longest wait for the job's Jupyter (600)"
    )


def connect_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.notebook.connection import Connection

    cluster = context.cluster()
    with Connection(cluster, args.job, port=args.port, status=context.status) as connection:
        connection.wait_until_ready(args.timeout)
        url = connection.url
        context.say(f"{args.job} is at {url}")
        if not args.no_browser:
            import webbrowser

            webbrowser.open(url)
        if context.talk is not None:
            context.say("Ctrl-C ends the connection; the job goes on until `opai job stop`")
            connection.serve_until_ended()
    return Result({"job": args.job, "url": url}, View("nothing", name="url"))
