"""`opai job exec` and `ssh`: a command or a shell inside a running task."""

from __future__ import annotations

import sys

from openpaisdk.commands.result import Result, View
from openpaisdk.commands.tasks import pick_task, ssh_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.parsing import CommandParser

# Whatever shell the task's image has; with a terminal it prompts.
SHELL = "if command -v bash >/dev/null; then exec bash{0}; else exec sh{0}; fi"


def exec_arguments(parser: CommandParser) -> None:
    parser.takes_command = True
    parser.add_argument("job", metavar="JOB", help="NAME, or USER~NAME")
    parser.add_argument(
        "task", nargs="?", metavar="ROLE/INDEX", help="which task; the first running one without it"
    )
    parser.add_argument("--tty", action="store_true", help="give the command a terminal")
    parser.add_argument("--no-stdin", action="store_true", help="do not pass standard input on")
    parser.usage = "opai job exec JOB [ROLE/INDEX] [options] -- COMMAND"


def exec_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.errors import UsageError

    if not args.command:
        raise UsageError("there is no command to run", hint=f"opai job exec {args.job} -- COMMAND")
    return _inside(args, context, args.command, tty=args.tty)


def ssh_arguments(parser: CommandParser) -> None:
    parser.add_argument("job", metavar="JOB", help="NAME, or USER~NAME")
    parser.add_argument(
        "task", nargs="?", metavar="ROLE/INDEX", help="which task; the first running one without it"
    )


def ssh_run(args: Namespace, context: Context) -> Result:
    args.no_stdin = False
    return _inside(args, context, None, tty=sys.stdin.isatty())


def _inside(args: Namespace, context: Context, command: list[str] | None, *, tty: bool) -> Result:
    """Through the server where it can, by ssh to the task's address otherwise."""
    cluster = context.cluster()
    detail = cluster.job(args.job)
    label, _ = pick_task(detail, args.task)
    if "exec" not in cluster.extensions:
        code = _by_ssh(detail, label, command)
        return Result({"task": label, "exitCode": code}, View("nothing", name="task"), exit_code=code)
    from openpaisdk.commands.terminal import run_in_task

    capture = context.log_streams is None or args.output != "table"
    data: dict[str, Any] = {"task": label, "exitCode": None}
    data.update(
        run_in_task(
            cluster,
            args.job,
            command or ["sh", "-c", SHELL.format(" -i" if tty else "")],
            task=label,
            tty=tty,
            stdin=not args.no_stdin and not capture,
            capture=capture,
        )
    )
    return Result(data, View("nothing", name="task"), exit_code=data["exitCode"])


def _by_ssh(detail: dict[str, Any], label: str, command: list[str] | None) -> int:
    import shlex
    import subprocess

    from openpaisdk.errors import ConflictError, NotFoundError

    address = next((row for row in ssh_addresses(detail) if row["task"] == label), None)
    if address is None:
        raise ConflictError(f"task {label} has no ssh address now", hint=f"opai job why {detail['name']}")
    words = ["ssh", "-p", str(address["port"]), f"{address['user']}@{address['host']}"]
    if command:
        words += ["--", shlex.join(command)]
    try:
        return subprocess.run(words, check=False).returncode
    except FileNotFoundError:
        raise NotFoundError("the program `ssh` is not installed", hint=f"run: {shlex.join(words)}") from None
