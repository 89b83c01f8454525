"""The submitter's search path and Python go along to the embedded cluster, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openpaisdk.job.surroundings import with_surroundings
from support.opai import Opai
from support.servers import end_processes_of

HERE = {"PATH": "/venv/bin:/bin", "VIRTUAL_ENV": "/venv", "TOKEN": "secret", "CONDA_PREFIX": ""}


def on(alias: str) -> Any:
    return SimpleNamespace(config=SimpleNamespace(alias=alias))


def test_only_the_embedded_cluster_is_told() -> None:
    spec: dict[str, Any] = {"name": "x", "extras": {"openpaisdk": {"image": "default"}}}
    sent = with_surroundings(spec, on("local"), HERE)
    assert sent["extras"]["openpaisdk"] == {
        "image": "default",
        "environment": {"PATH": "/venv/bin:/bin", "VIRTUAL_ENV": "/venv"},
    }
    assert "environment" not in spec["extras"]["openpaisdk"]
    assert with_surroundings(spec, on("lab"), HERE) == spec
    assert with_surroundings(sent, on("lab"), HERE) == spec
    assert with_surroundings({"name": "x"}, on("lab"), HERE) == {"name": "x"}


@pytest.fixture
def opai(tmp_path: Path) -> Iterator[Opai]:
    yield Opai(tmp_path)
    end_processes_of(tmp_path)


def test_a_server_started_elsewhere_runs_the_python_that_is_active_now(
    opai: Opai, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opai("job", "sub", "--no-source", "--wait", "--", "true")
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho the python of $VIRTUAL_ENV\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", str(python.parent.parent))
    done = opai("job", "sub", "--no-source", "--follow", "--", "python", "train.py")
    assert done.stdout == f"the python of {tmp_path}/venv\n"
