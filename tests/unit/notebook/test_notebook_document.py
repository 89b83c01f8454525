"""Notebooks as data: reading, parameters, what becomes of them as a script and as a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk import __install__
from openpaisdk.errors import NotFoundError, OpenPAIError, UsageError
from openpaisdk.notebook.document import Notebook, source
from openpaisdk.notebook.script import as_python, script
from openpaisdk.notebook.submission import commands, notebook_job


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
        ('{"cells": 3, "nbformat": 4}', UsageError, "no cells"),
        ('{"cells": [], "nbformat": 3}', UsageError, "format 3"),
        ('{"worksheets": [], "nbformat": 3}', UsageError, "format 3"),
        (None, NotFoundError, "no notebook"),
    ],
)
def test_what_is_no_notebook_is_said(
    tmp_path: Path, text: str | None, error: type[OpenPAIError], said: str
) -> None:
    path = tmp_path / "x.ipynb" if text is None else write(tmp_path, text)
    with pytest.raises(error, match=said) as caught:
        Notebook.read(path)
    assert caught.value.hint


def test_a_folder_is_no_notebook(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Notebook.read(tmp_path)


def test_another_language_is_refused_by_the_name_of_its_kernel(tmp_path: Path) -> None:
    path = write(tmp_path, notebook("1", language="R"))
    with pytest.raises(UsageError, match="'My kernel', which is not Python"):
        notebook_job(path)


def test_parameters_come_after_the_tagged_cell_and_replace_earlier_ones() -> None:
    data = Notebook(notebook("import x", "lr = 1", "train(lr)", tags={1: "parameters"}))
    first = data.with_parameters({"lr": 0.01})
    again = first.with_parameters({"lr": 0.5, "name": "a'b"})
    texts = [source(cell) for cell in again.cells]
    assert texts == ["import x", "lr = 1", '# Parameters\nlr = 0.5\nname = "a\'b"\n', "train(lr)"]
    assert len(first.cells) == 4


def test_parameters_without_a_tagged_cell_come_first() -> None:
    made = Notebook(notebook("train()")).with_parameters({"lr": 1})
    assert [source(cell) for cell in made.cells][1] == "train()"


def test_every_value_arrives_as_it_was_given() -> None:
    values = {"a": [1, 2.5, None], "b": {"c": True}, "d": "x\ny", "e": float("inf"), "f": (1,)}
    made = Notebook(notebook("x")).with_parameters(values)
    found: dict[str, object] = {}
    exec(source(made.cells[0]), found)
    assert {name: found[name] for name in values} == {**values, "f": [1]}


def test_a_parameter_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(UsageError, match="--param learning-rate"):
        Notebook(notebook("x")).with_parameters({"learning-rate": 1})
    with pytest.raises(UsageError, match="cannot be a object"):
        Notebook(notebook("x")).with_parameters({"model": object()})


def test_the_script_runs_without_jupyter(tmp_path: Path) -> None:
    data = notebook(
        "%matplotlib inline\nx = 2",
        "%%only batch\ntext = '''a\nb'''\nprint(text)",
        "%%only local\nprint('only here')",
        "%%only worker\nprint('another role')",
        "!echo shell",
        "%%bash\necho from bash",
        "if x:\n    %time print(x)",
        "lines = !printf 'p\\nq'\nprint(lines)",
        "print(7\n  % 4, '''\n%not a magic\n!nor this''')",
        "%%writefile made.txt\nhello",
        "print(open('made.txt').read())\nx?",
    )
    made = tmp_path / "nb.py"
    made.write_text(script(Notebook(data)))
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "PAI_JOB_NAME": "ann~x"}
    done = subprocess.run(
        [sys.executable, "-u", made], env=kept, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    said = "a b shell from bash 2 ['p', 'q'] 3 %not a magic !nor this hello"
    assert done.stdout.split() == said.split()


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%javascript\nalert(1)", "no Python for the cell magic `%%javascript`"),
        ("%prun f()", "no Python for the magic `%prun`"),
        ("x = (", "line 1 is not Python"),
        ("await thing()", "outside function"),
        ("%%only\nx", "%%only needs a place"),
    ],
)
def test_what_has_no_meaning_in_a_script_is_named_with_its_cell(cell: str, said: str) -> None:
    with pytest.raises(UsageError, match="cannot become a script: cell 2: ") as caught:
        script(Notebook(notebook("x = 1", cell)))
    assert said in caught.value.message


def test_python_is_left_alone() -> None:
    text = "def f(x):\n    return x % 2  # !ls\n"
    assert as_python(text) == text.rstrip()


def test_the_job_of_each_mode(tmp_path: Path) -> None:
    path = write(tmp_path, notebook("x = 1", tags={0: "parameters"}), "my model.ipynb")
    batch = notebook_job(path, parameters={"x": 2}, packages=["numpy"], gpu=1)
    commands = batch.job.spec["taskRoles"]["notebook"]["commands"]
    assert commands[-1] == "python3 -m openpai.runtime.notebook_run 'my model.ipynb'"
    assert any("numpy" in line for line in commands)
    assert "x = 2" in batch.files["my model.ipynb"]
    made = notebook_job(path, mode="script")
    assert "my model.py" in made.files
    interactive = notebook_job(path, mode="interactive", ports={"tensorboard": 1})
    assert interactive.token and interactive.token not in json.dumps(interactive.job.spec["taskRoles"])
    assert interactive.job.spec["extras"]["openpaisdk"]["kind"] == "interactive"
    ports = interactive.job.spec["taskRoles"]["notebook"]["resourcePerInstance"]["ports"]
    assert ports == {"tensorboard": 1, "jupyter": 1}
    assert [found.job.check() for found in (batch, made, interactive)] == [[], [], []]
    with pytest.raises(UsageError, match="mode 'fast'"):
        notebook_job(path, mode="fast")


def test_our_own_package_is_in_every_job_and_strange_ones_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, notebook("x = 1"))
    plain = notebook_job(path, name="a").job.spec
    assert notebook_job(path, name="a", packages=[__install__]).job.spec == plain
    for wrong in ("", "--index-url=x", "a\nb", "; rm"):
        with pytest.raises(UsageError, match="not a package"):
            notebook_job(path, packages=[wrong])


@pytest.mark.parametrize(
    ("mode", "python", "code", "said"),
    [
        ("batch", None, 127, "this image has no Python"),
        ("interactive", "exit 1", 126, "no JupyterLab in this job"),
    ],
)
def test_an_image_that_lacks_what_is_needed_says_so(
    mode: str, python: str | None, code: int, said: str, tmp_path: Path
) -> None:
    if python is not None:
        (tmp_path / "python3").write_text(f"#!/bin/sh\n{python}\n")
        (tmp_path / "python3").chmod(0o755)
    lines = "\n".join(commands(mode, "nb.ipynb", [], {}))
    done = subprocess.run(
        ["/bin/sh", "-ec", lines], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(("ours", "address"), [("http://127.0.0.1:1", "127.0.0.1"), ("", "0.0.0.0")])
def test_jupyter_listens_no_wider_than_it_must(ours: str, address: str, tmp_path: Path) -> None:
    """On our server the way in leads through the server; elsewhere through the cluster's network."""
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho "$@" "token=$JUPYTER_TOKEN"\n')
    python.chmod(0o755)
    variables = {"PAI_CONTAINER_HOST_jupyter_PORT_LIST": "18000,18001", "OPAI_PAI_URI": ours, "HOME": "/h"}
    lines = "\n".join(commands("interactive", "nb.ipynb", [], {})).replace("<% $secrets.jupyter %>", "s3cret")
    done = subprocess.run(
        ["/bin/sh", "-euc", lines],
        env={**variables, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    served = done.stdout.splitlines()[-1]
    assert f"--ServerApp.ip={address} --ServerApp.port=18000 " in served
    assert served.endswith("token=s3cret") and served.count("s3cret") == 1
