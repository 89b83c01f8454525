"""What a command returns: data, how a person would like to see it, and the exit code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Column:
    """One column of a table: a title and where its text comes from in a row.

    On a narrow terminal the columns with the highest `spare` are left out first; 0 stays.
    """

    __slots__ = ("cell", "right", "spare", "state", "title")

    def __init__(
        self,
        title: str,
        cell: str | Callable[[Any], object],
        *,
        right: bool = False,
        state: bool = False,
        spare: int = 0,
    ) -> None:
        self.title = title
        self.cell = cell
        self.right = right
        self.state = state
        self.spare = spare

    def text(self, row: Any) -> str:
        value = row.get(self.cell) if isinstance(self.cell, str) else self.cell(row)
        return "" if value is None else str(value)


class View:
    """How data looks on a screen.

    `kind` is one of `table` (rows with columns), `text` (the data is text, or `write` makes it), `log`
    (records of a job's output) and `nothing` (it was shown while the command ran).
    With `prose`, lines longer than the terminal are broken between words.
    `name` gives the one word per row that `-o name` prints; `empty` is said on stderr when there are no rows.
    """

    __slots__ = ("columns", "empty", "kind", "name", "prose", "write")

    def __init__(
        self,
        kind: str,
        *,
        columns: Iterable[Column] = (),
        name: str | Callable[[Any], object] | None = None,
        write: Callable[[Any], str] | None = None,
        empty: str = "",
        prose: bool = False,
    ) -> None:
        self.kind = kind
        self.prose = prose
        self.columns = tuple(columns)
        self.name = name
        self.write = write
        self.empty = empty


class Result:
    """The outcome of a command; `data` is JSON-able, or an iterator of JSON-able records."""

    __slots__ = ("data", "exit_code", "view")

    def __init__(self, data: Any, view: View | None = None, *, exit_code: int = 0) -> None:
        self.data = data
        self.view = view or View("text")
        self.exit_code = exit_code

    @property
    def streams(self) -> bool:
        return not isinstance(self.data, (dict, list, str, int, float, bool, type(None)))
