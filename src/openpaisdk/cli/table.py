"""Rows as aligned columns; on a terminal long words lose their middle, and spare columns go."""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, TextIO

    from openpaisdk.commands.result import Column

# Rows that are laid out together; more than a screen, few enough to keep memory flat.
BLOCK = 500
GAP = "  "
# Characters that a long word keeps before columns are left out, and when nothing else can give way.
COMFORTABLE, LEAST = 24, 6
STATE_COLOURS = {
    "succeeded": "32",
    "running": "36",
    "waiting": "33",
    "stopping": "35",
    "stopped": "35",
    "failed": "31",
}


def write_table(
    rows: Iterator[Any],
    columns: Sequence[Column],
    stream: TextIO,
    *,
    width: int | None = None,
    colour: bool = False,
) -> None:
    """Without `width` the lines are as long as they need; a later, wider cell pushes its neighbours aside."""
    widths: list[int] = []
    shown: list[int] = []
    dots = ellipsis_for(stream)
    while block := [[_printable(column.text(row)) for column in columns] for row in islice(rows, BLOCK)]:
        if not widths:
            titles = [column.title for column in columns]
            widths = [max(map(cell_width, cells)) for cells in zip(titles, *block)]
            shown = list(range(len(columns)))
            if width is not None:
                shown, widths = fit(widths, columns, width)
            line = _line(titles, columns, widths, shown, dots)
            stream.write((f"\x1b[1m{line}\x1b[0m" if colour else line) + "\n")
        stream.writelines(
            _line(cells, columns, widths, shown, dots if width is not None else None, colour) + "\n"
            for cells in block
        )


def fit(widths: list[int], columns: Sequence[Column], width: int) -> tuple[list[int], list[int]]:
    """Which columns are shown, and how wide each is, so that a line is no longer than `width`."""
    shown = list(range(len(columns)))
    found = _shrunk(widths, columns, shown, width, COMFORTABLE)
    for spare in sorted({column.spare for column in columns if column.spare}, reverse=True):
        if _length(found, shown) <= width:
            break
        shown = [index for index in shown if columns[index].spare != spare]
        found = _shrunk(widths, columns, shown, width, COMFORTABLE)
    if _length(found, shown) > width:
        found = _shrunk(widths, columns, shown, width, LEAST)
    while len(shown) > 1 and _length(found, shown) > width:
        shown.pop()
    return shown, found


def _shrunk(
    widths: list[int], columns: Sequence[Column], shown: Sequence[int], width: int, least: int
) -> list[int]:
    """The widest words give way first; numbers and states are whole or not there."""
    found = list(widths)
    elastic = [index for index in shown if not columns[index].right and not columns[index].state]
    while elastic and _length(found, shown) > width:
        widest = max(elastic, key=lambda index: found[index])
        if found[widest] <= max(least, len(columns[widest].title)):
            break
        found[widest] -= 1
    return found


def _length(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + len(GAP) * (len(shown) - 1)


def _line(
    cells: Sequence[str],
    columns: Sequence[Column],
    widths: Sequence[int],
    shown: Iterable[int],
    dots: str | None,
    colour: bool = False,
) -> str:
    words = []
    for index in shown:
        text = shorten(cells[index], widths[index], dots) if dots else cells[index]
        space = " " * (widths[index] - cell_width(text))
        code = STATE_COLOURS.get(text) if colour and columns[index].state else None
        text = f"\x1b[{code}m{text}\x1b[0m" if code else text
        words.append(space + text if columns[index].right else text + space)
    return GAP.join(words).rstrip()


def shorten(text: str, width: int, dots: str) -> str:
    """Without its middle where it is too long: what tells names apart is often at their end."""
    if cell_width(text) <= width:
        return text
    room = max(0, width - len(dots))
    tail = room // 3
    head = text
    while head and cell_width(head) > room - tail:
        head = head[:-1]
    end = text[len(text) - tail :] if tail else ""
    while cell_width(head + end) > room:
        end = end[1:]
    return (head + dots + end)[:width]


def cell_width(text: str) -> int:
    """Columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def ellipsis_for(stream: Any) -> str:
    """Three full stops where the terminal lacks the one letter."""
    try:
        "…".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "..."
    return "…"


def _printable(text: str) -> str:
    """A line break or an escape sequence in a name must not tear the table, nor steer the terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)
