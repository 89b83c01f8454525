"""One thing that is wrong in a job spec, with its place; and how the server words it for OpenPAI clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from openpaisdk.errors import InvalidJobError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Path = tuple["str | int", ...]
Position = tuple[int, int]

MASK = "******"

# Levels of nesting; jobs have about ten.
DEEPEST = 100
_LONGEST_SHOWN_VALUE = 60
_MOST_COMPARED = 200
# Keys below these are names chosen by people; ajv writes such steps as ['name'] and all others as .name
_NAMED_BY_PEOPLE = ("taskRoles", "ports")


class Problem:
    """What is wrong, where it is, and what was probably meant."""

    __slots__ = ("column", "keyword", "line", "message", "params", "source", "steps", "suggestion", "value")

    def __init__(
        self,
        steps: Path,
        message: str,
        *,
        keyword: str,
        value: Any = None,
        suggestion: str | None = None,
        params: dict[str, Any] | None = None,
        source: str = "<text>",
        position: Position | None = None,
    ) -> None:
        self.steps = steps
        self.message = message
        self.keyword = keyword
        self.value = value
        self.suggestion = suggestion
        self.params = params or {}
        self.source = source
        self.line: int | None = position[0] if position else None
        self.column: int | None = position[1] if position else None

    @property
    def path(self) -> str:
        return ".".join(map(str, self.steps))

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"
        where = f"{place}: {self.path}: " if self.steps else f"{place}: "
        return where + self.message + (f"; {self.suggestion}" if self.suggestion else "")

    def __repr__(self) -> str:
        return f"<Problem {self}>"

    def as_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "value": self.value,
            "keyword": self.keyword,
            "message": self.message,
            "suggestion": self.suggestion,
        }


def shown(value: Any) -> str:
    """A value as a message shows it: short, and containers by their kind."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN_VALUE:
        return f"{value[:_LONGEST_SHOWN_VALUE]!r}..."
    return repr(value)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    words = list(islice(known, _MOST_COMPARED))
    by_letters = {_letters(candidate): candidate for candidate in words}
    if found := by_letters.get(_letters(word)):
        return found
    import difflib

    close = difflib.get_close_matches(_letters(word), by_letters, n=1, cutoff=0.6)
    return by_letters[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    found = nearest(word, known)
    return f"did you mean `{found}`?" if found else None


def _letters(word: str) -> str:
    return "".join(filter(str.isalnum, word)).lower()


def too_deep(source: str) -> Problem:
    return Problem((), f"nested more than {DEEPEST} levels deep", keyword="syntax", source=source)


def reject(problems: Sequence[Problem]) -> InvalidJobError:
    """The error that carries all the problems of one text."""
    lines = [str(problem) for problem in problems]
    return InvalidJobError("\n".join(lines), problems=problems)


def ajv_errors(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """The problems in the shape that OpenPAI's own validator reports, for clients that read it."""
    return [
        {
            "keyword": problem.keyword,
            "dataPath": _data_path(problem),
            "schemaPath": _schema_path(problem),
            "params": problem.params,
            "message": problem.message + (f"; {problem.suggestion}" if problem.suggestion else ""),
        }
        for problem in problems
    ]


def _data_path(problem: Problem) -> str:
    steps = problem.steps
    if problem.keyword == "additionalProperties":  # said of the mapping that holds the key
        steps = steps[:-1]
    written = ""
    for index, step in enumerate(steps):
        if isinstance(step, int):
            written += f"[{step}]"
        elif index and steps[index - 1] in _NAMED_BY_PEOPLE:
            written += f"['{step}']"
        else:
            written += f".{step}"
    return written


def _schema_path(problem: Problem) -> str:
    steps = problem.steps[:-1] if problem.keyword == "additionalProperties" else problem.steps
    written = "#"
    for index, step in enumerate(steps):
        if isinstance(step, int):
            written += "/items"
        elif index and steps[index - 1] in _NAMED_BY_PEOPLE:
            written += "/patternProperties/^[a-zA-Z_][a-zA-Z0-9_]*$"
        else:
            written += f"/properties/{step}"
    return f"{written}/{problem.keyword}"
