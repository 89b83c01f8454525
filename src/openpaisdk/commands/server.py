"""`opai server start|stop|status|logs|reset`: the cluster in the box."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View
from openpaisdk.commands.wording import capacity, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from openpaisdk.commands.context import Context

# Options that make it a server for others: then it stays in the foreground, where a supervisor wants it.
SHARED = ("host", "tls_cert", "tls_key", "insecure", "own_jobs_only")

SETTINGS = (
    *("host", "port", "data_dir", "tls_cert", "tls_key", "launcher", "fake_gpus"),
    *("file_quota_mb", "rate_limits"),
)


def start_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--host", metavar="ADDRESS", help="listen here; beyond loopback it needs TLS or --insecure"
    )
    parser.add_argument("--port", type=int, metavar="PORT", help="listen on this port (a free one)")
    parser.add_argument("--data-dir", metavar="FOLDER", help="where jobs, logs and files are kept")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key")
    parser.add_argument("--launcher", choices=("auto", "process", "container"), help="what runs tasks (auto)")
    parser.add_argument("--fake-gpus", type=int, metavar="N", help="pretend to have N GPUs")
    parser.add_argument(
        "--quota",
        action="append",
        default=[],
        metavar="USER=LIMITS",
        help="most a user's jobs hold at once, such as 'ann=gpu:2,jobs:10'; USER * is everybody",
    )
    parser.add_argument(
        "--virtual-cluster",
        action="append",
        default=[],
        metavar="NAME=SHARE",
        help="a virtual cluster with its share of the machine, from 0 to 1",
    )
    parser.add_argument(
        "--file-quota-mb", type=int, metavar="MB", help="most that each home on its storage holds"
    )
    parser.add_argument(
        "--rate-limits",
        metavar="LIMITS",
        help="such as api=600,list=120,submit=3600, or off; by default off on loopback",
    )
    parser.add_argument("--insecure", action="store_true", help="listen beyond loopback without TLS")
    parser.add_argument("--own-jobs-only", action="store_true", help="show people only their own jobs")
    parser.add_argument("--foreground", action="store_true", help="stay in the foreground")
    parser.epilog = (
        "Alone it starts your own cluster in the background, which `opai` also does by itself when needed.\n"
        "With --host, TLS or --foreground it serves others and stays in the foreground until it is stopped."
    )


def start_run(args: Namespace, context: Context) -> Result:
    options = server_options(args)
    if args.foreground or any(getattr(args, name) for name in SHARED):
        return _serve(options, replace=context.log_streams is not None)
    from openpaisdk import local

    config = local.start(options) if options else local.ensure()
    started = config.extra.get("started")
    offers = capacity(started) if isinstance(started, dict) else ""
    said = "local cluster started" + (f" ({offers})" if offers else "")
    context.say(said if started is not None else f"local cluster already runs at {config.pai_uri}")
    return Result(_shown(local.status()), View("text", write=_status_lines, name="uri"))


def server_options(args: Namespace) -> list[str]:
    """The options for the server's own command line."""
    options: list[str] = []
    for name in SETTINGS:
        value = getattr(args, name)
        if value is not None:
            options += [f"--{name.replace('_', '-')}", _absolute(name, str(value))]
    for name in ("quota", "virtual_cluster"):
        for value in getattr(args, name):
            options += [f"--{name.replace('_', '-')}", value]
    options += [
        f"--{name.replace('_', '-')}" for name in ("insecure", "own_jobs_only") if getattr(args, name)
    ]
    return options


def _absolute(name: str, value: str) -> str:
    """A background server has a working directory of its own."""
    from pathlib import Path

    return str(Path(value).absolute()) if name in ("data_dir", "tls_cert", "tls_key") else value


def _serve(options: list[str], *, replace: bool) -> Result:
    import os
    import subprocess
    import sys

    words = [sys.executable, "-m", "openpaisdk.server", *options]
    if replace and os.name == "posix":
        # The server takes this process over, so that a supervisor's signals reach it.
        os.execv(words[0], words)  # noqa: S606
    process = subprocess.Popen(words)
    while True:
        try:
            code = process.wait()
            return Result({"exitCode": code}, View("nothing"), exit_code=code if code >= 0 else 128 - code)
        except KeyboardInterrupt:
            # The server got Ctrl-C as well and is closing; its end is what counts.
            continue


def stop_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Running tasks go on; the next server finds them again."


def stop_run(args: Namespace, context: Context) -> Result:
    from openpaisdk import local

    jobs = local.status().get("jobs")
    was = local.stop()
    if was is None:
        context.say("the local cluster was not running")
    elif not isinstance(jobs, dict) or jobs.get("RUNNING") or jobs.get("STOPPING"):
        context.say("local cluster stopped; running tasks go on")
    else:
        context.say("local cluster stopped")
    return Result({"stopped": was is not None}, View("nothing"))


def status_arguments(parser: ArgumentParser) -> None:
    pass


def status_run(args: Namespace, context: Context) -> Result:
    from openpaisdk import local

    return Result(_shown(local.status()), View("text", write=_status_lines, name="uri"))


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != "token"}


def _status_lines(found: Any) -> str:
    if not found.get("running"):
        return f"not running\n  data folder  {found['data_dir']}\n  log          {found['log']}"
    import time

    lines = [f"running at {found.get('uri')}"]
    begun = found.get("started_at")
    rows = {
        "process": found.get("pid"),
        "up for": duration(max(0.0, time.time() - begun)) if isinstance(begun, (int, float)) else None,
        "version": found.get("version"),
        "data folder": found.get("data_dir"),
        "log": found.get("log"),
        "launcher": found.get("launcher"),
        "capacity": capacity(found),
        "load": _words(found.get("load")),
        "jobs": _words(found.get("jobs")),
        "problem": found.get("problem"),
    }
    lines += [f"  {name:<12} {value}" for name, value in rows.items() if value]
    return "\n".join(lines)


def _words(found: Any) -> str:
    if isinstance(found, dict):
        return ", ".join(f"{name.lower()} {_words(value)}" for name, value in found.items() if value)
    if isinstance(found, (list, tuple)):
        return " ".join(map(_words, found))
    return f"{found:g}" if isinstance(found, float) else str(found or "")


def logs_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tail", type=int, default=100, metavar="N", help="the last N lines (100); 0 is all")


def logs_run(args: Namespace, context: Context) -> Result:
    from openpaisdk import local

    return Result(list(_last_lines(local.log_path(), args.tail)))


def _last_lines(path: str, count: int) -> Iterator[str]:
    from collections import deque
    from pathlib import Path

    from openpaisdk.errors import NotFoundError

    if not Path(path).exists():
        raise NotFoundError(f"there is no log {path}", hint="the local cluster has not been started yet")
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        yield from (line.rstrip("\n") for line in (deque(file, count) if count > 0 else file))


def reset_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def reset_run(args: Namespace, context: Context) -> Result:
    from openpaisdk import local

    if not args.yes:
        context.confirm(f"Delete all jobs and files in {local.data_folder()}?", instead="--yes")
    local.reset()
    context.say("local cluster stopped; its jobs and files are deleted")
    return Result({"reset": True}, View("nothing"))
