"""The IPython extension: `%opai` is the whole command line, `%%only` runs a cell in some places only."""

from __future__ import annotations

import html
import shlex
import sys
from typing import Any

from openpaisdk.commands.context import Context
from openpaisdk.commands.result import Result, View
from openpaisdk.errors import OpenPAIError, UsageError
from openpaisdk.notebook.progress import COLOURS


class Shown:
    """A command's data, shown as the command line shows it; `.data` is what `Engine().process` returns."""

    def __init__(self, data: Any, view: View) -> None:
        self.data = data
        self._view = view

    def __iter__(self) -> Any:
        return iter(self.data)

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> bool:
        return bool(self.data == (other.data if isinstance(other, Shown) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.data)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Where there is no HTML, in a terminal or the log of a notebook that runs as a job."""
        rows = self.data if isinstance(self.data, list) else [self.data]
        if self._view.kind == "table" and rows:
            from io import StringIO

            from openpaisdk.cli.table import write_table

            lines = StringIO()
            write_table(iter(rows), self._view.columns, lines)
            printer.text(lines.getvalue().rstrip())
        elif self._view.kind == "table":
            printer.text(self._view.empty)
        elif self._view.write is not None:
            printer.text(self._view.write(self.data).rstrip())
        else:
            printer.text(repr(self.data))

    def _repr_html_(self) -> str | None:
        if self._view.kind == "table" and isinstance(self.data, (list, dict)):
            rows = self.data if isinstance(self.data, list) else [self.data]
            return table(rows, self._view) if rows else f"<i>{html.escape(self._view.empty)}</i>"
        if self._view.write is not None:
            return f"<pre>{html.escape(self._view.write(self.data).rstrip())}</pre>"
        if isinstance(self.data, str):
            return f"<pre>{html.escape(self.data.rstrip())}</pre>"
        return None


def table(rows: list[Any], view: View) -> str:
    """The same columns as on a terminal; everything escaped."""
    head = "".join(f"<th style='text-align:left'>{html.escape(column.title)}</th>" for column in view.columns)
    lines = []
    for row in rows:
        cells = []
        for column in view.columns:
            text = column.text(row)
            colour = COLOURS.get(text.upper()) if column.state else None
            side = "right" if column.right else "left"
            style = f"text-align:{side}" + (f";color:{colour}" if colour else "")
            cells.append(f"<td style='{style}'>{html.escape(text)}</td>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def run_opai(line: str) -> Shown | None:
    """`%opai job list`: the command's data. What a job prints, and what is said, goes below the cell."""
    from openpaisdk.engine import Engine

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%opai {line}: {error}", hint="close the quotes") from None
    engine = Engine()

    def make_context(output: str) -> Context:
        return Context(talk=sys.stderr, log=(sys.stdout, sys.stderr), open_cluster=engine.open_cluster)

    result, _ = engine.run(words, make_context)
    shown = _show_log(result) if result.view.kind == "log" else result.data
    if result.streams and shown is result.data:
        shown = list(result.data)
    if result.exit_code:
        from openpaisdk.errors import JobFailedError

        raise JobFailedError(f"opai {line}: it did not succeed", hint="opai job why tells why")
    return None if shown is None or result.view.kind == "nothing" else Shown(shown, result.view)


def _show_log(result: Result) -> list[Any]:
    """Writes log records as they come and keeps them."""
    kept = []
    for record in result.data:
        kept.append(record)
        stream = sys.stderr if record["stream"] == "stderr" else sys.stdout
        stream.write(result.view.write(record) if result.view.write else record["text"])
        stream.flush()
    return kept


def load(shell: Any) -> None:
    """Registers the magics; called by `%load_ext openpaisdk`."""
    from openpaisdk.runtime.only import register

    def opai(line: str) -> Shown | None:
        try:
            return run_opai(line)
        except OpenPAIError as error:
            # IPython shows this instead of a traceback through our code, and the cell still fails.
            lines = [f"error: {error.message}"]
            lines += [f"  {problem}" for problem in getattr(error, "problems", ())]
            lines += [f"  {text}" for text in (error.hint or "").splitlines()]
            error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
            raise

    shell.register_magic_function(opai, "line", "opai")
    register(shell)
