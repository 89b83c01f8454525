"""Notebooks as data: reading, parameters, places, and what becomes of them as a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk.errors import NotFoundError, OpenPAIError, UsageError
from openpaisdk.notebook.document import Notebook, source
from openpaisdk.notebook.submission import notebook_job


def notebook(*cells: str, tags: dict[int, str] | None = None, language: str = "python") -> dict[str, object]:
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "k", "display_name": "My kernel", "language": language}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"c{number}",
                "metadata": {"tags": [tags[number]]} if tags and number in tags else {},
                "execution_count": None,
                "outputs": [],
                "source": text,
            }
            for number, text in enumerate(cells)
        ],
    }


def write(folder: Path, data: object, name: str = "nb.ipynb") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("not json", UsageError, "is not a notebook"),
        ("[]", UsageError, "no cells"),
        ('{"cells": [], "nbformat": 3}', UsageError, "format 3"),
        (None, NotFoundError, "no notebook"),
    ],
)
def test_what_is_no_notebook_is_said(tmp_path: Path, text: str | None, error: type[OpenPAIError], said: str) -> None:
    path = tmp_path / "x.ipynb" if text is None else write(tmp_path, text)
    with pytest.raises(error, match=said) as caught:
        Notebook.read(path)
    assert caught.value.hint


def test_another_language_is_refused_by_the_name_of_its_kernel(tmp_path: Path) -> None:
    path = write(tmp_path, notebook("1", language="R"))
    with pytest.raises(UsageError, match="'My kernel', which is not Python"):
        Notebook.read(path).require_python()


def test_parameters_come_after_the_tagged_cell_and_replace_earlier_ones() -> None:
    first = Notebook(notebook("import x", "lr = 1", "train(lr)", tags={1: "parameters"})).with_parameters({"lr": 0.01})
    again = first.with_parameters({"lr": 0.5, "name": "a'b"})
    texts = [source(cell) for cell in again.cells]
    assert texts == ["import x", "lr = 1", "# Parameters\nlr = 0.5\nname = \"a'b\"\n", "train(lr)"]
    assert len(first.cells) == 4


def test_parameters_without_a_tagged_cell_come_first() -> None:
    made = Notebook(notebook("train()")).with_parameters({"lr": 1})
    assert [source(cell) for cell in made.cells][1] == "train()"


def test_a_parameter_name_that_python_does_not_take_is_refused() -> None:
    with pytest.raises(UsageError, match="--param learning-rate"):
        Notebook(notebook("x")).with_parameters({"learning-rate": 1})


def test_the_script_runs_without_jupyter(tmp_path: Path) -> None:
    data = notebook(
        "%matplotlib inline\nx = 2",
        "%%only batch\nprint('in a batch job')",
        "%%only local\nprint('only here')",
        "!echo shell",
        "%%bash\necho from bash",
        "if x:\n    %time print(x)",
    )
    script = tmp_path / "nb.py"
    script.write_text(Notebook(data).script())
    inherited = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-u", script], env={**inherited, "PAI_JOB_NAME": "ann~x"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == ["in a batch job", "shell", "from bash", "2", ""]


def test_magics_without_a_meaning_are_named_with_their_cell() -> None:
    with pytest.raises(UsageError, match=r"cell 2: no Python for the cell magic `%%javascript`"):
        Notebook(notebook("x = 1", "%%javascript\nalert(1)")).script()


def test_the_job_of_each_mode(tmp_path: Path) -> None:
    path = write(tmp_path, notebook("x = 1", tags={0: "parameters"}), "my model.ipynb")
    batch, files = notebook_job(path, parameters={"x": 2}, packages=["numpy"], gpu=1)
    commands = batch.job.spec["taskRoles"]["notebook"]["commands"]
    assert "notebook_run 'my model.ipynb'" in commands[-1]
    assert any("numpy" in line for line in commands)
    assert "x = 2" in files["my model.ipynb"]
    assert batch.job.check() == []
    script, files = notebook_job(path, mode="script")
    assert "my model.py" in files and script.job.check() == []
    interactive, _ = notebook_job(path, mode="interactive")
    assert interactive.token and interactive.token not in json.dumps(interactive.job.spec["taskRoles"])
    assert interactive.job.check() == []
    with pytest.raises(UsageError, match="--mode fast"):
        notebook_job(path, mode="fast")
