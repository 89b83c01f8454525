"""`opai output`: what a job left behind and what it printed; without -j, the last job."""

from __future__ import annotations

from pathlib import Path

from openpaisdk.commands.result import Column, Result, View
from openpaisdk.commands.wording import ago, file_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.core import Cluster


def _job_option(parser: ArgumentParser) -> None:
    parser.add_argument("-j", "--job-name", metavar="JOB", help="NAME, or USER~NAME (the last job)")


def _job(args: Namespace, context: Context) -> str:
    if args.job_name:
        return str(args.job_name)
    from openpaisdk.workspace.outputs import last_job

    found = last_job(context.cluster())
    context.say(f"job {found}")
    return found


def list_arguments(parser: ArgumentParser) -> None:
    _job_option(parser)


def list_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.workspace.outputs import list_outputs

    job = _job(args, context)
    rows = [{**entry.as_dict(), "name": name} for name, entry in list_outputs(context.cluster(), job)]
    view = View(
        "table",
        columns=(
            Column("NAME", "name"),
            Column("SIZE", lambda row: file_size(row["size"]), right=True),
            Column("CHANGED", lambda row: ago(row["modified"])),
        ),
        name="name",
        empty=f"job {job} has left no output; programs put files into $PAI_SDK_JOB_OUTPUT_DIR",
    )
    return Result(rows, view)


def download_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="file, folder or pattern of the output (all)"
    )
    _job_option(parser)
    parser.add_argument("--to", metavar="FOLDER", help="where to put it (a folder named after the job)")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are different")


def download_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.commands.transfers import Transfer, outcome_words
    from openpaisdk.workspace.outputs import download_outputs

    job = _job(args, context)
    with Transfer(context) as progress:
        outcome = download_outputs(
            context.cluster(),
            job,
            args.names,
            args.to,
            overwrite=args.overwrite,
            progress=progress,
        )
    if outcome["files"]:
        context.say(f"{outcome_words(outcome)} to {outcome['to']}")
    else:
        context.say(f"job {job} has left no output")
    return Result(outcome, View("nothing"))


def peek_arguments(parser: ArgumentParser) -> None:
    _job_option(parser)
    parser.add_argument("-t", "--task", metavar="ROLE[/INDEX]", help="which task, where there are several")
    parser.add_argument(
        "--stdout", action="store_true", help="what it printed (both streams without an option)"
    )
    parser.add_argument("--stderr", action="store_true", help="what it printed as errors")
    parser.add_argument("--stdin", action="store_true", help="the script that the task was given")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N lines")
    parser.add_argument("--save", metavar="FILE", help="also write it to a file, byte for byte")


def peek_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.errors import UsageError
    from openpaisdk.workspace.outputs import task_script

    cluster, job = context.cluster(), _job(args, context)
    role, _, number = (args.task or "").partition("/")
    if number and not number.isdigit():
        raise UsageError(f"-t {args.task}: expected ROLE or ROLE/INDEX", hint="for example -t worker/0")
    if args.tail is not None and args.tail < 0:
        raise UsageError(f"--tail: expected 0 or more, got {args.tail}")
    if args.save:
        _refuse_folder(args.save)
    wanted = [name for name in ("stdin", "stdout", "stderr") if getattr(args, name)] or ["stdout", "stderr"]
    found = {}
    for name in wanted:
        if name == "stdin":
            found[name] = task_script(cluster, job, role or None).encode()
        else:
            found[name] = _log(cluster, job, role or None, int(number or 0), name, args.tail)
    if args.save:
        _save(args.save, b"".join(found.values()))
    texts = {name: contents.decode("utf-8", "replace") for name, contents in found.items()}
    return Result({"job": job, **texts}, View("text", write=peek_text, name="job"))


def _log(cluster: Cluster, job: str, role: str | None, index: int, stream: str, tail: int | None) -> bytes:
    from openpaisdk.errors import NotFoundError, UsageError

    try:
        return cluster.read_log_bytes(job, role, index, stream=stream, tail=tail)
    except (NotFoundError, UsageError) as error:
        error.hint = error.hint and error.hint.replace("name one: ", "name one with -t: ", 1)
        raise


def peek_text(data: dict[str, Any]) -> str:
    """The texts one after the other, each ending its line."""
    texts = [data[name] for name in ("stdin", "stdout", "stderr") if data.get(name)]
    return "".join(text if text.endswith("\n") else text + "\n" for text in texts)


def _refuse_folder(path: str) -> None:
    from openpaisdk.errors import UsageError

    if Path(path).expanduser().is_dir():
        raise UsageError(
            f"--save {path}: it is a folder", hint=f"name a file in it, such as {Path(path, 'log.txt')}"
        )


def _save(path: str, contents: bytes) -> None:
    from openpaisdk.storage import BytesSource, LocalStorage

    LocalStorage().write(path, BytesSource(contents), overwrite=True)
