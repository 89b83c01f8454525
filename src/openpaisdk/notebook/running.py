"""Finds the notebook that is running this very cell, and gets it saved."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.notebook.document import Notebook, source

# A page that saves does so in well under a second.
PATIENCE = 4.0
# Classic notebooks have an object for it; Lab and Notebook 7 take the key that a person would press.
SAVE_SCRIPT = """
(function () {
  if (window.Jupyter && Jupyter.notebook) { Jupyter.notebook.save_notebook(); return; }
  var key = {key: 's', code: 'KeyS', keyCode: 83, which: 83, bubbles: true, cancelable: true};
  var mac = navigator.platform.indexOf('Mac') === 0;
  key[mac ? 'metaKey' : 'ctrlKey'] = true;
  (document.activeElement || document.body).dispatchEvent(new KeyboardEvent('keydown', key));
})();
"""


def find_notebook(path: str | Path | None = None, *, shell: Any = None) -> Path:
    """The path given, or the file this kernel serves (Jupyter Server, Lab, classic, VS Code)."""
    if path is not None:
        found = Path(path)
        if not found.exists():
            raise NotFoundError(f"no notebook {path}", hint="give the path of an .ipynb file")
        return found
    shell = shell if shell is not None else _shell()
    for candidate in _candidates(shell):
        if candidate.suffix == ".ipynb" and candidate.exists():
            return candidate
    raise NotFoundError(
        "no running notebook was found",
        hint="run this in a notebook cell, or name the file: submit_notebook('nb.ipynb')",
    )


def ensure_saved(
    path: Path,
    cell: str | None,
    *,
    ask: Callable[[], object] | None = None,
    patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Asks the page to save and waits until it did.

    A page that does not answer is an error where the running cell is not in the file. Where it is there,
    other cells may still have changed: the person is told of when the file is.
    """
    before = path.stat().st_mtime_ns
    asked = (ask or _ask_page)()
    deadline = clock() + patience
    saved = False
    while not saved and clock() < deadline:
        pause(0.05)
        saved = path.stat().st_mtime_ns != before and (cell is None or _has_cell(path, cell))
    _take_back(asked)
    if saved:
        return
    if cell is not None and not _has_cell(path, cell):
        raise UsageError(
            f"{path} has changes that are not saved, and the page did not save them",
            hint="save the notebook (Ctrl-S) and run the cell again",
        )
    when = time.strftime("%H:%M:%S", time.localtime(path.stat().st_mtime))
    sys.stderr.write(f"the page did not save the notebook; it is submitted as it was saved at {when}\n")


def save_running(path: Path) -> None:
    """Gets the running notebook saved. VS Code takes no requests from a cell: nothing is waited for there."""
    shell = _shell()
    elsewhere = getattr(shell, "user_ns", {}).get("__vsc_ipynb_file__")
    ensure_saved(path, running_cell(shell), patience=0.0 if elsewhere else PATIENCE)


def save_if_running() -> None:
    """As `save_running`, for the notebook that runs this, if one does."""
    try:
        found = find_notebook()
    except NotFoundError:
        return
    save_running(found)


def running_cell(shell: Any = None) -> str | None:
    """The source of the cell that is executing, as the kernel got it."""
    shell = shell if shell is not None else _shell()
    history = getattr(getattr(shell, "history_manager", None), "input_hist_raw", None)
    return str(history[-1]) if history else None


def _has_cell(path: Path, cell: str) -> bool:
    try:
        notebook = Notebook.read(path)
    except (UsageError, NotFoundError):
        return False
    wanted = cell.strip()
    return any(source(item).strip() == wanted for item in notebook.cells)


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _ask_page() -> Any:
    """Sends the page a script that saves; the handle of what is shown for it, or None without a page."""
    if _shell() is None:
        return None
    shown = sys.modules["IPython"].display
    return shown.display(shown.Javascript(SAVE_SCRIPT), display_id=True)


def _take_back(shown: Any) -> None:
    """A script that stayed among the outputs would run again whenever the notebook is opened."""
    if shown is not None:
        shown.update({"text/plain": ""}, raw=True)


def _candidates(shell: Any) -> Iterator[Path]:
    names = getattr(shell, "user_ns", {}) if shell is not None else {}
    if names.get("__vsc_ipynb_file__"):
        yield Path(names["__vsc_ipynb_file__"])
    session = os.environ.get("JPY_SESSION_NAME")
    if session:
        yield Path(session)
        yield Path.cwd() / Path(session).name
    kernel = _kernel_id(shell)
    if kernel:
        yield from _from_servers(kernel, _running_servers())


def _kernel_id(shell: Any) -> str | None:
    """The id in the name of the kernel's connection file."""
    connection = getattr(getattr(getattr(shell, "kernel", None), "parent", None), "connection_file", "") or ""
    found = re.search(r"kernel-([0-9a-f-]{36})", str(connection))
    return found.group(1) if found else None


def _running_servers() -> Iterator[dict[str, Any]]:
    for folder in _runtime_folders():
        for file in [*folder.glob("jpserver-*.json"), *folder.glob("nbserver-*.json")]:
            try:
                yield json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue


def _runtime_folders() -> Iterable[Path]:
    home = Path.home()
    named = os.environ.get("JUPYTER_RUNTIME_DIR")
    folders = [Path(named)] if named else []
    folders += [
        home / ".local/share/jupyter/runtime",
        home / "Library/Jupyter/runtime",
        Path(os.environ.get("APPDATA", str(home))) / "jupyter" / "runtime",
    ]
    return [folder for folder in folders if folder.is_dir()]


def _from_servers(kernel: str, servers: Iterable[dict[str, Any]]) -> Iterator[Path]:
    from openpaisdk.errors import OpenPAIError
    from openpaisdk.transport import Transport

    for server in servers:
        try:
            transport = Transport(str(server["url"]).rstrip("/"), timeout=3.0, verify=False)
            headers = {"Authorization": f"token {server.get('token', '')}"}
            sessions = transport.request("GET", "/api/sessions", headers=headers).json()
        except (OpenPAIError, KeyError, ValueError):
            continue
        root = Path(server.get("root_dir") or server.get("notebook_dir") or ".")
        for session in sessions if isinstance(sessions, list) else []:
            if session.get("kernel", {}).get("id") == kernel:
                yield root / (session.get("notebook") or session).get("path", "")
