"""Executes the tutorials in `examples/` as on an empty machine, and tidies what they show."""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path
from typing import Any

from support.jupyter import environment

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
TUTORIALS = sorted(EXAMPLES.glob("[0-9]*.ipynb"))
# A shell line of a notebook fails without a word: these show that something went wrong.
SIGNS = ("Traceback (most recent call last)", "command not found", "this should not happen", "No such file")
SECRET = re.compile(r"eyJ[\w-]{10,}\.|token=[\w-]{8,}")


def execute(path: Path, home: Path) -> Any:
    """The executed notebook; an error of a cell is raised. The home must be empty."""
    import nbformat
    from nbclient import NotebookClient

    work = home / "work"
    work.mkdir(parents=True)
    shutil.copy(path, work)
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(work)}},
        record_timing=False,
        extra_arguments=["--log-level=40"],
    )
    client.execute(env=environment(home, LOGNAME="ann", USER="ann", NO_COLOR="1", COLUMNS="100"))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
            for output in cell.outputs:
                tidy(output, home)
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """One output for what came in pieces through the same stream."""
    found: list[Any] = []
    for output in outputs:
        if found and output.get("name") and output.get("name") == found[-1].get("name"):
            found[-1]["text"] += output["text"]
        else:
            found.append(output)
    return found


def tidy(value: Any, home: Path) -> Any:
    """The outputs without this machine's folders, name and ports; changed in place."""
    if isinstance(value, str):
        value = value.replace(f"{home}/work/", "").replace(str(home), "~")
        # Shell lines of a notebook run on a terminal: without colours, and without lines that were replaced.
        value = re.sub(r"[^\n]*\r?\x1b\[2K", "", value.replace("\r\n", "\n"))
        value = re.sub(r"\x1b\[[0-9;]*m| +(?=\n)", "", value)
        value = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9186", value)
        return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "machine", value)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        value[key] = tidy(item, home)
    return value


def shown(notebook: Any) -> str:
    """All the text that the cells put out."""
    found: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            found += ["".join(output.get("text", "")), *map(str, output.get("data", {}).values())]
    return "\n".join(found)
