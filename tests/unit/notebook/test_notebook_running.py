"""Finding the running notebook and getting it saved, without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.notebook import submit_notebook
from openpaisdk.notebook.running import ensure_saved, find_notebook

DATA = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}


def saved(path: Path, *cells: str) -> Path:
    made = [{"cell_type": "code", "metadata": {}, "source": text, "outputs": []} for text in cells]
    path.write_text(json.dumps({**DATA, "cells": made}))
    return path


def test_vs_code_and_jupyter_server_tell_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "nb.ipynb")
    assert find_notebook(shell=SimpleNamespace(user_ns={"__vsc_ipynb_file__": str(path)})) == path
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    assert find_notebook(shell=SimpleNamespace(user_ns={})) == path


def test_no_notebook_says_what_to_do() -> None:
    with pytest.raises(NotFoundError, match="no running notebook") as caught:
        find_notebook(shell=SimpleNamespace(user_ns={}))
    assert "submit_notebook(" in (caught.value.hint or "")
    with pytest.raises(NotFoundError, match="missing.ipynb"):
        find_notebook("missing.ipynb")


def test_a_page_that_saves_is_waited_for(tmp_path: Path) -> None:
    path = saved(tmp_path / "nb.ipynb", "old")
    ensure_saved(path, "new", ask=lambda: saved(path, "old", "new") and None)


def test_a_page_that_does_not_save_is_an_error(tmp_path: Path) -> None:
    path = saved(tmp_path / "nb.ipynb", "old")
    times = iter([0.0, 1.0, 2.0, 9.0])
    with pytest.raises(UsageError, match="not saved") as caught:
        ensure_saved(path, "new", ask=lambda: None, clock=lambda: next(times), pause=lambda seconds: None)
    assert "Ctrl-S" in (caught.value.hint or "")


def test_inside_a_job_submitting_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_CONTAINER_ID", "c")
    assert submit_notebook("missing.ipynb") is None
