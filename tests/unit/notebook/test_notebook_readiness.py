"""A notebook job that cannot work is refused before it is queued, where that can be known."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from openpaisdk.config import ClusterConfig
from openpaisdk.errors import UsageError
from openpaisdk.job import Job
from openpaisdk.notebook.readiness import require_ready

LOCAL = SimpleNamespace(config=ClusterConfig("local"))
LAB = SimpleNamespace(config=ClusterConfig("lab"))


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A python3 on the PATH that has nothing but the standard library."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    return python


def made(image: str | None = None) -> Job:
    return Job("nb").task_role("notebook", "true", image=image)


def test_what_the_python_here_lacks_is_named(bare_python: Path) -> None:
    with pytest.raises(UsageError, match=f"{bare_python}, which lacks nbclient and ipykernel") as caught:
        require_ready(made(), "batch", [], LOCAL)  # type: ignore[arg-type]
    assert "-p nbclient -p ipykernel" in (caught.value.hint or "")
    assert "--mode script" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="lacks jupyterlab"):
        require_ready(made(), "interactive", [], LOCAL)  # type: ignore[arg-type]


def test_what_cannot_be_known_is_let_through(bare_python: Path) -> None:
    require_ready(made(), "script", [], LOCAL)  # type: ignore[arg-type]
    require_ready(made(), "batch", ["nbclient"], LOCAL)  # type: ignore[arg-type]
    require_ready(made(), "batch", [], LAB)  # type: ignore[arg-type]
    require_ready(made("jupyter/minimal-notebook"), "batch", [], LOCAL)  # type: ignore[arg-type]


def test_an_image_counts_for_nothing_where_only_processes_run(bare_python: Path, empty_home: Path) -> None:
    state = empty_home / ".openpai" / "local" / "server.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"launcher": "process"}))
    with pytest.raises(UsageError, match="lacks nbclient"):
        require_ready(made("jupyter/minimal-notebook"), "batch", [], LOCAL)  # type: ignore[arg-type]


def test_no_python_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="no python3 on the PATH"):
        require_ready(made(), "script", [], LOCAL)  # type: ignore[arg-type]
