"""`%load_ext openpaisdk`: the command line and `%%only` in a real IPython."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from openpaisdk.cli import magics
from openpaisdk.errors import OpenPAIError
from openpaisdk.job import Job
from openpaisdk.notebook import watch
from openpaisdk.notebook.progress import JobLink, StateLine
from support.fake_pai import ALL_EXTENSIONS, FakePAI, engine_for


@pytest.fixture
def pai(monkeypatch: pytest.MonkeyPatch) -> FakePAI:
    found = FakePAI(extensions=ALL_EXTENSIONS)
    engine = engine_for(found)
    monkeypatch.setattr("openpaisdk.engine.Engine", lambda: engine)
    return found


@pytest.fixture
def shell(pai: FakePAI) -> Iterator[InteractiveShell]:
    made = InteractiveShell()
    made.extension_manager.load_extension("openpaisdk")
    yield made
    atexit.unregister(made.atexit_operations)
    made.atexit_operations()
    InteractiveShell.clear_instance()


def test_a_command_is_data_and_a_table(shell: InteractiveShell, pai: FakePAI) -> None:
    pai.add("one")
    found: Any = shell.run_cell("%opai job list").result
    assert found[0]["name"] == "one" and len(found) == 1 and found == found.data
    page = found._repr_html_()
    assert "<th style='text-align:left'>NAME</th>" in page and "running" in page
    lines = shell.display_formatter.format(found)[0]["text/plain"].splitlines()
    assert len(lines) == 2 and lines[0].startswith("NAME") and lines[1].startswith("one")
    shell.run_cell("rows = %opai job list --name")
    assert shell.user_ns["rows"].data == ["one"]


def test_names_are_escaped() -> None:
    from openpaisdk.commands.result import Column, View

    shown = magics.Shown([{"name": "<script>"}], View("table", columns=[Column("NAME", "name")]))
    assert "<script>" not in shown._repr_html_()
    assert magics.Shown("<b>", View("text"))._repr_html_() == "<pre>&lt;b&gt;</pre>"
    assert magics.Shown([], View("table", empty="no jobs"))._repr_html_() == "<i>no jobs</i>"


def test_an_error_is_a_sentence_and_the_cell_fails(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell.run_cell("%opai job list missing")
    assert isinstance(done.error_in_exec, OpenPAIError)
    said = capsys.readouterr().out
    assert "error: " in said and "Traceback" not in said and "missing" in said
    shell.run_cell("%opai job sub 'open")
    assert "close the quotes" in capsys.readouterr().out


def test_a_followed_job_prints_below_the_cell(
    shell: InteractiveShell, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.logs["fixed"] = [("worker/0", "stdout", "epoch 1\n")]
    shell.run_cell("%opai job sub --follow -j fixed -- echo hi")
    assert capsys.readouterr().out.startswith("epoch 1\n")
    pai.outcomes["broken"] = 3
    done = shell.run_cell("%opai job sub --wait -j broken -- false")
    assert not done.success and "opai job why" in capsys.readouterr().out
    pai.add("one")
    pai.logs["one"] = [("worker/0", "stdout", "from the log\n")]
    shell.run_cell("log = %opai job logs -f one")
    assert "from the log" in capsys.readouterr().out


def test_only_runs_the_cell_where_it_is_meant_to(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell("%%only local\nx = 1\nx + 1").result == 2
    shell.run_cell("%%only batch\nx = 5")
    assert "not run: this is local, the cell is for batch only" in capsys.readouterr().out
    assert shell.user_ns["x"] == 1
    assert not shell.run_cell("%%only local\n1 / 0").success
    assert not shell.run_cell("%%only\nx = 7").success
    shell.run_cell("%reload_ext openpaisdk")
    assert shell.run_cell("%%only local\nx").result == 1


def test_watching_shows_state_and_log(pai: FakePAI, capsys: pytest.CaptureFixture[str]) -> None:
    pai.logs["w"] = [("worker/0", "stdout", "epoch 1\n"), ("worker/0", "stderr", "careful\n")]
    from openpaisdk.engine import Engine

    job = Job.from_command("true", name="w").submit(Engine().open_cluster(None))
    link = JobLink(job)
    assert link == job.link and ">w</a>" in link._repr_html_()
    assert watch(link).state == "SUCCEEDED"
    shown = capsys.readouterr()
    assert shown.out == "epoch 1\n"
    assert shown.err == "w  waiting\nw  running\ncareful\nw  succeeded\n"


def test_the_state_is_one_display_that_changes(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    import IPython

    updates: list[str] = []

    class Display:
        def update(self, thing: object) -> None:
            updates.append(repr(thing))

    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(IPython.display, "display", lambda thing, display_id: Display())
    line = StateLine("job<1>")
    for state in ("WAITING", "RUNNING", "RUNNING", "FAILED"):
        line.show(state)
    assert updates == ["job<1>  running", "job<1>  failed"]
    assert line._repr_html_() == "<b>job&lt;1&gt;</b> <span style='color:#c00'>failed</span>"
