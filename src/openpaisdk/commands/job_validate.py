"""`opai job validate`: every problem of every file at once."""

from __future__ import annotations

from openpaisdk.commands.result import Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.protocol import Problem


def validate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="job files; `-` is standard input")


def validate_run(args: Namespace, context: Context) -> Result:
    rows = [check_file(path) for path in args.files]
    for row in rows:
        if row["valid"]:
            context.say(f"{row['file']}: {'can be submitted' if row['warnings'] else 'fine'}")
    wrong = any(not row["valid"] for row in rows)
    return Result(rows, View("text", write=_lines, name="file", prose=True), exit_code=2 if wrong else 0)


def check_file(path: str) -> dict[str, Any]:
    """The file's problems, and what is hardly meant in one without any, each with its ready line."""
    from openpaisdk.errors import InvalidJobError
    from openpaisdk.job import Job

    warnings: list[Problem] = []
    try:
        job = Job.from_file(path)
        problems = job.check()
        if not problems:
            warnings = job.cautions()
    except InvalidJobError as error:
        problems = error.problems
    return {
        "file": path,
        "valid": not problems,
        "problems": [{**problem.as_dict(), "text": str(problem)} for problem in problems],
        "warnings": [{**problem.as_dict(), "text": str(problem)} for problem in warnings],
    }


def _lines(rows: Any) -> str:
    lines = []
    for row in rows:
        lines += [problem["text"] for problem in row["problems"]]
        lines += [f"warning: {problem['text']}" for problem in row["warnings"]]
    return "\n".join(lines)
