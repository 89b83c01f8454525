"""What runs a notebook inside a job: progress, results, failures, stops, and a Python without openpaisdk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk.runtime import notebook_run, only, stand_in

SOURCE = Path(notebook_run.__file__).parent.parent.parent


def write(folder: Path, *cells: str) -> Path:
    path = folder / "nb.ipynb"
    made = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for n, text in enumerate(cells)
    ]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}))
    return path


def environment(folder: Path) -> dict[str, str]:
    (folder / "out").mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "HOME")}
    found = {
        "PAI_JOB_NAME": "ann~nb",
        "PAI_SDK_JOB_OUTPUT_DIR": str(folder / "out"),
        "PAI_SDK_TASK_DIR": str(folder),
    }
    return {**kept, **found, "PYTHONPATH": str(SOURCE), "JUPYTER_PLATFORM_DIRS": "1"}


def run(folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "openpai.runtime.notebook_run", file],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def outputs(folder: Path) -> list[str]:
    cells = json.loads((folder / "out" / "nb.ipynb").read_text())["cells"]
    return ["".join("".join(part.get("text", "")) for part in cell["outputs"]) for cell in cells]


@pytest.mark.slow
def test_a_notebook_comes_back_executed(tmp_path: Path) -> None:
    write(tmp_path, "x = 20\nprint('one')", "x + 1", "import sys; print('late', file=sys.stderr)")
    done = run(tmp_path, "nb.ipynb")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "cell 1/3  x = 20" and lines[1] == "one" and "21" in lines
    assert lines[-1].startswith("cell 3/3  done in")
    assert done.stderr == "late\n"
    assert outputs(tmp_path)[0] == "one\n"
    assert "<html" in (tmp_path / "out" / "nb.html").read_text()


@pytest.mark.slow
def test_a_failing_cell_leaves_what_was_done(tmp_path: Path) -> None:
    write(tmp_path, "print('one')", "1 / 0", "print('never')")
    done = run(tmp_path, "nb.ipynb")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "\x1b" not in done.stderr
    assert done.stderr.endswith("error: cell 2 of 3 failed; nb.ipynb so far is saved\n")
    assert outputs(tmp_path) == ["one\n", "", ""]
    assert "ZeroDivisionError" in (tmp_path / "out" / "nb.html").read_text()


@pytest.mark.slow
def test_a_dead_kernel_is_said(tmp_path: Path) -> None:
    write(tmp_path, "import os; os._exit(3)")
    done = run(tmp_path, "nb.ipynb")
    assert done.returncode == 1
    assert "the kernel died in cell 1 of 1" in done.stderr


@pytest.mark.slow
def test_a_stopped_notebook_is_saved(tmp_path: Path) -> None:
    write(tmp_path, "print('one')", "import time; print('begun', flush=True); time.sleep(60)")
    command = [sys.executable, "-m", "openpai.runtime.notebook_run", "nb.ipynb"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        while process.stdout.readline() != "begun\n":
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert process.returncode == 143
    assert "stopped in cell 2 of 2; nb.ipynb so far is saved" in said
    assert outputs(tmp_path) == ["one\n", "begun\n"]


def test_a_python_that_cannot_execute_notebooks_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "nbclient", None)
    assert notebook_run.main(["nb.ipynb"]) == 126
    assert "-p nbclient" in capsys.readouterr().err


def test_a_python_without_openpaisdk_runs_the_submitting_cell(tmp_path: Path) -> None:
    """As in an image: only the runtime is there, under its short name."""
    runtime = tmp_path / "shipped" / "openpai" / "runtime"
    runtime.mkdir(parents=True)
    for file in Path(notebook_run.__file__).parent.glob("*.py"):
        (runtime / file.name).write_text(file.read_text())
    (tmp_path / "nb.py").write_text(
        "import sys\n"
        "from openpaisdk import __install__\n"
        "from openpaisdk.core import in_job_container\n"
        "from openpaisdk.notebook import submit_notebook\n"
        "print(in_job_container(), submit_notebook(pip_requirements=[__install__]), sys.argv)\n"
        "import openpaisdk\n"
        "try:\n    openpaisdk.Job\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-m", "openpai.runtime.notebook_run", "nb.py"],
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHONPATH": str(runtime.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[0] == "True None ['nb.py']", done.stderr
    assert "lacks openpaisdk" in done.stdout


def test_nothing_stands_in_where_openpaisdk_is(tmp_path: Path) -> None:
    assert stand_in.path_for(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, "local"),
        ({"PAI_JOB_NAME": "ann~x"}, "batch"),
        ({"PAI_JOB_NAME": "ann~x", "PAI_SDK_JOB_KIND": "interactive"}, "interactive"),
    ],
)
def test_a_cell_runs_only_where_it_is_meant_to(
    variables: dict[str, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for name in only.PLACES:
        chosen = only.choose([f"%%only {name}\n", "work()\n"])
        assert (chosen[-1] == "work()\n") == (name == place)
    assert f"this is {place}" in only.choose(["%%only elsewhere\n", "work()\n"])[0]
    assert only.choose([f"%%only {place}, nowhere\n", "%%bash\n", "ls\n"]) == ["%%bash\n", "ls\n"]
    assert only.choose(["work()\n"]) == ["work()\n"]


def test_a_cell_can_be_for_a_task_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_JOB_NAME", "ann~x")
    monkeypatch.setenv("PAI_CURRENT_TASK_ROLE_NAME", "ps")
    assert only.applies(["ps"]) and not only.applies(["worker"])
