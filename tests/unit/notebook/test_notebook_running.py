"""Finding the running notebook and getting it saved, without a browser."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.notebook import submit_notebook
from openpaisdk.notebook.running import ensure_saved, find_notebook, running_cell

DATA = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
KERNEL = "01234567-89ab-cdef-0123-456789abcdef"


def saved(path: Path, *cells: str) -> Path:
    made = [{"cell_type": "code", "metadata": {}, "source": text, "outputs": []} for text in cells]
    path.write_text(json.dumps({**DATA, "cells": made}))
    return path


def test_vs_code_and_jupyter_server_tell_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "nb.ipynb")
    assert find_notebook(shell=SimpleNamespace(user_ns={"__vsc_ipynb_file__": str(path)})) == path
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    assert find_notebook(shell=SimpleNamespace(user_ns={})) == path


def test_an_older_server_is_asked_for_its_sessions(
    tmp_path: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sessions(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            body = json.dumps(
                [
                    {"kernel": {"id": "another"}, "notebook": {"path": "other.ipynb"}},
                    {"kernel": {"id": KERNEL}, "notebook": {"path": "deep/nb.ipynb"}},
                ]
            ).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            return

    asked: list[tuple[str, str]] = []
    (tmp_path / "deep").mkdir()
    path = saved(tmp_path / "deep" / "nb.ipynb")
    runtime = empty_home / ".local/share/jupyter/runtime"
    runtime.mkdir(parents=True)
    (runtime / "nbserver-1.json").write_text("not json")
    with HTTPServer(("127.0.0.1", 0), Sessions) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        found = {
            "url": f"http://127.0.0.1:{server.server_port}/",
            "token": "t",
            "notebook_dir": str(tmp_path),
        }
        (runtime / "nbserver-2.json").write_text(json.dumps(found))
        parent = SimpleNamespace(connection_file=f"/run/kernel-{KERNEL}.json")
        shell = SimpleNamespace(user_ns={}, kernel=SimpleNamespace(parent=parent))
        assert find_notebook(shell=shell) == path
        server.shutdown()
    assert asked == [("/api/sessions", "token t")]


def test_no_notebook_says_what_to_do() -> None:
    with pytest.raises(NotFoundError, match="no running notebook") as caught:
        find_notebook(shell=SimpleNamespace(user_ns={}))
    assert "submit_notebook(" in (caught.value.hint or "")
    with pytest.raises(NotFoundError, match=r"missing\.ipynb"):
        submit_notebook("missing.ipynb")


def test_the_running_cell_is_the_text_a_person_wrote() -> None:
    history = SimpleNamespace(input_hist_raw=["", "%load_ext openpaisdk"])
    assert running_cell(SimpleNamespace(history_manager=history)) == "%load_ext openpaisdk"
    assert running_cell(SimpleNamespace()) is None


def test_a_page_that_saves_is_waited_for(tmp_path: Path) -> None:
    path = saved(tmp_path / "nb.ipynb", "old")
    ensure_saved(path, "new", ask=lambda: saved(path, "old", "new") and None)


def test_a_page_that_does_not_save_is_an_error(tmp_path: Path) -> None:
    path = saved(tmp_path / "nb.ipynb", "old")
    times = iter([0.0, 1.0, 2.0, 9.0])
    with pytest.raises(UsageError, match="not saved") as caught:
        ensure_saved(path, "new", ask=lambda: None, clock=lambda: next(times), pause=lambda seconds: None)
    assert "Ctrl-S" in (caught.value.hint or "")


def test_cells_that_may_have_changed_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path / "nb.ipynb", "this")
    ensure_saved(path, "this", ask=lambda: None, patience=0.0)
    assert "as it was saved at" in capsys.readouterr().err


def test_inside_a_job_submitting_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_CONTAINER_ID", "c")
    assert submit_notebook("missing.ipynb") is None
