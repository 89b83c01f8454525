"""`opai job notebook` and `opai job connect`: a notebook becomes a job; a browser opens the Jupyter in it."""

from __future__ import annotations

from openpaisdk.commands.job_sub import pairs, port_counts, resource_options
from openpaisdk.commands.result import Result, View
from openpaisdk.commands.submitting import submit_jobs, submit_options, submit_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context

MODES = ("batch", "script", "interactive")


def notebook_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("notebook", metavar="NB.ipynb", help="the notebook")
    parser.add_argument(
        "-j", "--job-name", metavar="NAME", help="name of the job; made from the notebook's without it"
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="batch",
        help="execute it, run it as plain Python, or open a Jupyter in the job (batch)",
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="value for its `parameters` cell"
    )
    parser.add_argument("-i", "--image", metavar="IMAGE", help="container image")
    parser.add_argument(
        "-p", "--package", action="append", default=[], metavar="PACKAGE", help="pip package to install"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="environment variable for the notebook"
    )
    parser.add_argument(
        "-s",
        "--source",
        action="append",
        default=[],
        metavar="PATH",
        help="file, folder or glob beside the notebook to send along",
    )
    resource_options(parser)
    parser.add_argument("--vc", metavar="VC", help="virtual cluster (default)")
    submit_options(parser)


def notebook_run(args: Namespace, context: Context) -> Result:
    import os

    from openpaisdk.config import megabytes
    from openpaisdk.notebook.readiness import require_ready
    from openpaisdk.notebook.submission import notebook_job

    made = notebook_job(
        args.notebook,
        mode=args.mode,
        name=args.job_name,
        parameters=parameter_values(args.param),
        packages=args.package,
        env=pairs(args.env, "--env", "NAME=VALUE"),
        vc=args.vc,
        ports=port_counts(args.port),
        image=args.image,
        gpu=args.gpu,
        cpu=args.cpu,
        mem=megabytes(args.mem) if args.mem else None,
    )
    if not args.dry_run:
        cluster = context.cluster()
        require_ready(made.job, args.mode, args.package, cluster)
        # Relative to where the person types, wherever the notebook is.
        made.send(cluster, [os.path.abspath(path) for path in args.source])  # noqa: PTH100
    records = submit_jobs([made.job], args, context, on_submitted=lambda job: made.remember())
    if args.mode == "interactive" and not args.dry_run:
        alias = f" -a {context.alias}" if context.alias else ""
        context.say(f"open it with: opai job connect {made.job.name}{alias}")
    return submit_result(records[0], args)


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
    made = Connection(cluster, args.job, port=args.port, say=context.say, status=context.status)
    with made as connection:
        connection.wait_until_ready(args.timeout)
        url = connection.url
        context.say(f"{connection.name} is at {url}")
        context.say("Ctrl-C ends the connection; the job goes on until `opai job stop`")
        page = None if args.no_browser else open_browser(url)
        state = "RUNNING"
        try:
            state = connection.serve_until_ended()
            context.say(f"{connection.name} has ended ({state.lower()}); the connection is closed")
        except KeyboardInterrupt:
            context.say(f"{connection.name} goes on · opai job connect {args.job} · opai job stop {args.job}")
        finally:
            if page is not None:
                page.unlink(missing_ok=True)
    return Result({"job": connection.name, "url": url, "state": state}, View("nothing", name="url"))


def open_browser(url: str) -> Any:
    """Opens a page of our own that leads on: a token on the browser's command line can be seen by others."""
    import webbrowser

    from openpaisdk.config import home, write_private

    page = home() / "connect.html"
    write_private(page, f'<meta http-equiv="refresh" content="0; url={url}">\n')
    webbrowser.open(page.as_uri())
    return page
