"""`opai job validate`: every problem of every file at once."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context


def validate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="job files; `-` is standard input")


def validate_run(args: Namespace, context: Context) -> Result:
    rows = [check_file(path) for path in args.files]
    for row in rows:
        if row["valid"]:
            context.say(f"{row['file']}: fine")
    wrong = any(not row["valid"] for row in rows)
    return Result(rows, View("text", write=_lines, name="file"), exit_code=2 if wrong else 0)


def check_file(path: str) -> dict[str, Any]:
    """The file's problems as data, each with its ready line."""
    from openpaisdk.errors import InvalidJobError
    from openpaisdk.job import Job

    try:
        problems = Job.from_file(path).check()
    except InvalidJobError as error:
        problems = error.problems
    return {
        "file": path,
        "valid": not problems,
        "problems": [{**problem.as_dict(), "text": str(problem)} for problem in problems],
    }


def _lines(rows: Any) -> str:
    return "\n".join(problem["text"] for row in rows for problem in row["problems"])
