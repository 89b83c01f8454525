"""Writes a result to stdout as a table, JSON, YAML or names; streams are written row by row."""

from __future__ import annotations

import json
import sys
from itertools import chain, islice

from openpaisdk.cli.table import write_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Result, View


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
        if view.prose and context is not None and context.rich_output:
            from openpaisdk.commands.overview import terminal_width
            from openpaisdk.commands.wording import wrapped

            text = "\n".join(wrapped(line, terminal_width()) for line in text.splitlines())
        if text:
            sys.stdout.write(text if text.endswith("\n") else text + "\n")


def _write_log(stream: str, text: str, context: Context | None) -> None:
    if context is not None and context.log_streams is not None:
        context.write_log(text, stream)
        return
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
        from openpaisdk.commands.overview import colourful, terminal_width

        write_table(rows, view.columns, sys.stdout, width=terminal_width(), colour=colourful())
    else:
        write_table(rows, view.columns, sys.stdout)
