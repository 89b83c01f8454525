"""Writes a result to stdout as a table, JSON, YAML or names; streams row by row, rich only on a terminal."""

from __future__ import annotations

import json
import sys
from itertools import chain, islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Column, Result, View

# Rows that are laid out together; more than a screen, few enough to keep memory flat.
BLOCK = 500
STATE_COLOURS = {
    "succeeded": "green",
    "running": "cyan",
    "waiting": "yellow",
    "stopping": "magenta",
    "stopped": "magenta",
    "failed": "red",
}


def show(result: Result, output: str, context: Context | None = None) -> None:
    """Write the result in the format asked for."""
    if output == "json":
        _write_json(result)
    elif output == "yaml":
        _write_yaml(result)
    elif output == "name":
        for row in _rows(result):
            sys.stdout.write(f"{_name(row, result.view)}\n")
    else:
        _write_for_people(result, context)


def _rows(result: Result) -> Iterable[Any]:
    if result.streams or isinstance(result.data, list):
        rows: Iterable[Any] = result.data
        return rows
    return (result.data,)


def _name(row: Any, view: View) -> str:
    if isinstance(row, str):
        return row.rstrip("\n")
    if view.name is not None:
        return str(view.name(row) if callable(view.name) else row.get(view.name))
    for key in ("name", "job", "alias"):
        if isinstance(row, dict) and key in row:
            return str(row[key])
    return json.dumps(row, ensure_ascii=False)


def _write_json(result: Result) -> None:
    if not result.streams:
        sys.stdout.write(json.dumps(result.data, indent=2, ensure_ascii=False) + "\n")
        return
    before = "[\n"
    for row in result.data:
        sys.stdout.write(before + json.dumps(row, ensure_ascii=False))
        before = ",\n"
    sys.stdout.write("[]\n" if before == "[\n" else "\n]\n")


def _write_yaml(result: Result) -> None:
    from openpaisdk.protocol import dump

    if not result.streams:
        sys.stdout.write(dump(result.data, "yaml"))
        return
    empty = True
    for row in result.data:
        sys.stdout.write(dump([row], "yaml"))
        empty = False
    if empty:
        sys.stdout.write("[]\n")


def _write_for_people(result: Result, context: Context | None) -> None:
    view = result.view
    if view.kind == "nothing":
        return
    if view.kind == "log":
        for record in result.data:
            _write_log(record["stream"], view.write(record) if view.write else record["text"], context)
    elif view.kind == "table":
        _write_table(iter(_rows(result)), view, context)
    else:
        text = view.write(result.data) if view.write else _plain(result.data)
        if text:
            sys.stdout.write(text if text.endswith("\n") else text + "\n")


def _write_log(stream: str, text: str, context: Context | None) -> None:
    if context is not None:
        context.clear_status()
    target = sys.stderr if stream == "stderr" else sys.stdout
    target.write(text)
    target.flush()


def _plain(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, list) and all(isinstance(entry, str) for entry in data):
        return "\n".join(data)
    from openpaisdk.protocol import dump

    return dump(data, "yaml")


def _write_table(rows: Iterator[Any], view: View, context: Context | None) -> None:
    first = list(islice(rows, 1))
    if not first:
        if view.empty and context is not None:
            context.say(view.empty)
        return
    rows = chain(first, rows)
    if context is not None and context.rich_output:
        _write_rich(rows, view.columns)
    else:
        _write_aligned(rows, view.columns)


def _write_aligned(rows: Iterator[Any], columns: tuple[Column, ...]) -> None:
    """Columns as wide as the first block needs; a later, wider cell pushes its neighbours aside."""
    widths: list[int] = []
    while block := [[column.text(row) for column in columns] for row in islice(rows, BLOCK)]:
        if not widths:
            block.insert(0, [column.title for column in columns])
            widths = [max(map(len, cells)) for cells in zip(*block)]
        lines = []
        for cells in block:
            padded = (
                cell.rjust(width) if column.right else cell.ljust(width)
                for cell, width, column in zip(cells, widths, columns)
            )
            lines.append("  ".join(padded).rstrip())
        sys.stdout.write("\n".join(lines) + "\n")


def _write_rich(rows: Iterator[Any], columns: tuple[Column, ...]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    header = True
    while block := list(islice(rows, BLOCK)):
        table = Table(box=None, pad_edge=False, show_header=header, header_style="bold")
        for column in columns:
            table.add_column(
                column.title,
                justify="right" if column.right else "left",
                overflow="ellipsis",
                no_wrap=True,
            )
        for row in block:
            cells = []
            for column in columns:
                text = column.text(row)
                cells.append(Text(text, style=STATE_COLOURS.get(text, "") if column.state else ""))
            table.add_row(*cells)
        console.print(table)
        header = False
