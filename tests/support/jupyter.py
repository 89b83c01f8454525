"""A real Jupyter Server and a real browser for the tests of notebooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
PATIENCE = 60_000.0


def environment(home: Path, **more: str) -> dict[str, str]:
    """A person's shell: this Python's programs first on the PATH, a home of its own, the language English."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPAI_", "PAI_", "JUPYTER"))
    }
    programs = str(Path(sys.executable).parent)
    own = {"HOME": str(home), "OPENPAI_HOME": str(home / ".openpai"), "PATH": f"{programs}:{kept['PATH']}"}
    return {**kept, **own, "JUPYTER_RUNTIME_DIR": str(home / "jupyter"), "COLUMNS": "120", **more}


def write_notebook(path: Path, *cells: str, tags: dict[int, list[str]] | None = None) -> Path:
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {"tags": (tags or {}).get(number, [])},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    data = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": made}
    path.write_text(json.dumps(data))
    return path


def printed(path: Path) -> str:
    """Everything that the cells of an executed notebook printed or returned."""
    found = []
    for cell in json.loads(path.read_text())["cells"]:
        for output in cell.get("outputs", ()):
            found.append(output.get("text") or output.get("data", {}).get("text/plain") or "")
    return "".join("".join(text) for text in found)


@contextmanager
def jupyter_server(home: Path, folder: Path) -> Iterator[str]:
    """The address of a real JupyterLab over `folder`, with its token."""
    words = ("--no-browser", "--allow-root", "--ServerApp.port=0", f"--ServerApp.root_dir={folder}")
    with open(home / "jupyter.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *words],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + 60
        state = home / "jupyter" / f"jpserver-{process.pid}.json"
        while not state.exists():
            assert process.poll() is None and time.monotonic() < deadline, (home / "jupyter.log").read_text()
            time.sleep(0.1)
        found = json.loads(state.read_text())
        yield f"http://127.0.0.1:{found['port']}/lab/tree/{{}}?token={found['token']}"
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def browser() -> Iterator[Any]:
    """A page in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(CHROMIUM))
        try:
            page = chromium.new_page(viewport={"width": 1200, "height": 900})
            page.set_default_timeout(PATIENCE)
            yield page
        finally:
            chromium.close()


def wait_for_kernel(page: Any) -> None:
    """Until the notebook is open and its kernel is ready."""
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    # The circle beside the kernel's name is idle before there is a kernel; the status bar is not.
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()


def cell_editor(page: Any, number: int) -> Any:
    return page.locator(".jp-NotebookPanel .jp-CodeCell .cm-content").nth(number)


def output_of(page: Any, number: int, text: str) -> str:
    """The output below a cell that has this text in it, once it is there."""
    cell = page.locator(".jp-NotebookPanel .jp-CodeCell").nth(number)
    found = cell.locator(".jp-OutputArea-output").filter(has_text=text)
    found.first.wait_for()
    return str(found.first.inner_text())
