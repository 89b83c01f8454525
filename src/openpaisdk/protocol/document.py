"""A job text, read: its data, and the place of every value in it."""

from __future__ import annotations

from openpaisdk.protocol.problems import Path, Position, Problem, reject, too_deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Marks(Protocol):
        """Finds values, or the keys that lead to them, in a text."""

        def value(self, path: Path) -> Position | None: ...

        def key(self, path: Path) -> Position | None: ...


# Far above what any server accepts: a data set or a log given by mistake is refused before it is parsed.
_LARGEST_TEXT = 8_000_000


class Document:
    """Plain data together with its text; `flaws` are problems that parsing found, such as a key twice."""

    __slots__ = ("data", "flaws", "marks", "source", "text")

    def __init__(self, data: Any, source: str, text: str, marks: Marks, flaws: list[Problem]) -> None:
        self.data = data
        self.source = source
        self.text = text
        self.marks = marks
        self.flaws = flaws

    def position(self, path: Path) -> Position | None:
        """Line and column (from 1) of the value at this path, nothing where there is none."""
        return self.marks.value(path)

    def key_position(self, path: Path) -> Position | None:
        """Line and column of the key that leads to the value."""
        return self.marks.key(path)


def load(text: str, source: str = "<text>") -> Document:
    """Read YAML or JSON; raises InvalidJobError with the place where it cannot be read."""
    text = text.removeprefix("\ufeff")
    if len(text) > _LARGEST_TEXT:
        message = f"{len(text)} characters are too many for a job"
        raise reject([Problem((), message, keyword="size", source=source)])
    # JSON is tried first: it needs no YAML import, and YAML refuses some of it (tabs, surrogate pairs).
    if text.lstrip()[:1] == "{" and (found := _load_json(text, source)):
        return found
    from openpaisdk.protocol import yaml_text

    data, marks, flaws = yaml_text.parse(text, source)
    return Document(data, source, text, marks, flaws)


def _load_json(text: str, source: str) -> Document | None:
    import json

    from openpaisdk.protocol import json_text

    try:
        data, marks, flaws = json_text.parse(text, source)
    except json.JSONDecodeError as error:
        if text.lstrip()[1:].lstrip()[:1] == '"':  # meant as JSON, not as YAML's `{key: value}`
            raise reject([json_text.syntax_problem(error, source)]) from None
        return None
    except RecursionError:
        raise reject([too_deep(source)]) from None
    except ValueError:  # Python's own limit
        message = "a number has too many digits"
        raise reject([Problem((), message, keyword="syntax", source=source)]) from None
    return Document(data, source, text, marks, flaws)


def load_file(path: str) -> Document:
    """Read a job file; `-` is standard input."""
    import sys
    from pathlib import Path as File

    from openpaisdk.errors import NotFoundError, UsageError

    if str(path) == "-":
        return load(_decoded(sys.stdin.buffer.read(), "<stdin>"), "<stdin>")
    try:
        raw = File(path).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {str(path)!r}", hint="check the path of the job file"
        ) from None
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    return load(_decoded(raw, str(path)), str(path))


def _decoded(raw: bytes, source: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        position = (before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        message = "this is not UTF-8 text"
        raise reject([Problem((), message, keyword="syntax", source=source, position=position)]) from None
