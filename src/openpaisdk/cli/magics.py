"""The IPython extension: `%opai` is the whole command line, `%%only` runs a cell in some places only, jobs show progress."""

from __future__ import annotations

import html
import shlex
from typing import Any

from openpaisdk.errors import OpenPAIError
from openpaisdk.notebook.document import only_places


class Shown:
    """A command's data: a table in a notebook, the plain data everywhere else through `.data`."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __iter__(self) -> Any:
        return iter(self.data)

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return repr(self.data)

    def _repr_html_(self) -> str:
        return as_html(self.data)


def as_html(data: Any) -> str:
    """Rows as a table, a mapping as two columns, anything else as text; everything escaped."""
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        columns = [name for name in data[0] if not isinstance(data[0][name], (dict, list))]
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
        rows = "".join("<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in data)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    if isinstance(data, dict):
        rows = "".join(f"<tr><th>{html.escape(str(name))}</th>{_cell(value)}</tr>" for name, value in data.items())
        return f"<table><tbody>{rows}</tbody></table>"
    return f"<pre>{html.escape(data if isinstance(data, str) else repr(data))}</pre>"


def _cell(value: object) -> str:
    return f"<td>{html.escape('' if value is None else str(value))}</td>"


def run_opai(line: str) -> Shown | None:
    """`%opai job list`: the command's data, or its error as one line."""
    from openpaisdk.engine import Engine

    data = Engine().process(shlex.split(line))
    return None if data is None else Shown(data)


def run_only(line: str, cell: str, shell: Any) -> None:
    """`%%only batch`: runs the cell where the place or the task role is one of those named."""
    from openpaisdk.runtime.place import current

    wanted, place = only_places(line.split()), current()
    if place.kind in wanted or (place.role and place.role in wanted):
        result = shell.run_cell(cell)
        if result is not None and not result.success:
            result.raise_error()
    else:
        print(f"not run: this is {place.kind}, the cell is for {', '.join(wanted)} only")  # noqa: T201


def watch(job: Any) -> None:
    """Shows a submitted job in the notebook until it ends: its state in one line that changes, its log below."""
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    line = display(_State(job.name, job.status()), display_id=True)
    for record in job.logs():
        if record.kind == "log":
            print(record.text)  # noqa: T201
        else:
            line.update(_State(job.name, record.state))
    line.update(_State(job.name, job.status()))


class _State:
    COLOURS = {"WAITING": "#888", "RUNNING": "#06c", "SUCCEEDED": "#080", "FAILED": "#c00", "STOPPED": "#a60"}

    def __init__(self, name: str, state: str) -> None:
        self.name, self.state = name, state

    def __repr__(self) -> str:
        return f"{self.name}  {self.state.lower()}"

    def _repr_html_(self) -> str:
        colour = self.COLOURS.get(self.state, "#888")
        return f"<b>{html.escape(self.name)}</b> <span style='color:{colour}'>{html.escape(self.state.lower())}</span>"


def load(shell: Any) -> None:
    """Registers the magics; called by `%load_ext openpaisdk`."""

    def opai(line: str) -> Shown | None:
        try:
            return run_opai(line)
        except OpenPAIError as error:
            hint = f"\n  {error.hint}" if error.hint else ""
            print(f"error: {error.message}{hint}")  # noqa: T201
            return None

    def only(line: str, cell: str) -> None:
        run_only(line, cell, shell)

    shell.register_magic_function(opai, "line", "opai")
    shell.register_magic_function(only, "cell", "only")
