"""Code that goes with a job: what is refused before it is sent, and what Ctrl-C says."""

from __future__ import annotations

from pathlib import Path

import pytest

from openpaisdk.cli.main import main
from openpaisdk.engine import Engine
from openpaisdk.errors import ConflictError, UsageError
from support.fake_pai import FakePAI


@pytest.mark.parametrize("words", [[""], ["   "], ["--", ""], ["--", "   "]])
@pytest.mark.parametrize("verb", [["sub"], ["sub", "--dry-run"]])
def test_an_empty_command_is_not_submitted(
    engine: Engine, pai: FakePAI, verb: list[str], words: list[str]
) -> None:
    with pytest.raises(UsageError, match=r"the command '.*' is empty"):
        engine.process(["job", *verb, *words])
    assert not pai.jobs


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_no_source_and_sources_exclude_each_other(engine: Engine, pai: FakePAI, more: list[str]) -> None:
    with pytest.raises(UsageError, match="--no-source and -s src exclude each other"):
        engine.process(["job", "sub", *more, "--no-source", "-s", "src", "--", "true"])
    assert not pai.jobs


def blobs(pai: FakePAI) -> list[str]:
    return [path for _, path in pai.calls if "/blobs" in path]


def test_a_taken_name_is_refused_before_code_is_sent(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    pai.add("taken", state="SUCCEEDED", exit=0)
    (tmp_path / "train.py").write_text("12345")
    with pytest.raises(ConflictError, match=r"Job ann~taken already exists\.") as caught:
        engine.process(["job", "sub", "-j", "taken", "--", "python", "train.py"])
    assert (caught.value.code, blobs(pai)) == ("ConflictJobError", [])
    assert "choose another with -j" in str(caught.value.hint)
    engine.process(["job", "sub", "-j", "free", "--", "python", "train.py"])
    assert blobs(pai)


def test_a_begun_job_with_a_taken_name_is_refused_too(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    pai.add("taken", state="SUCCEEDED", exit=0)
    (tmp_path / "train.py").write_text("12345")
    engine.process(["job", "create", "-j", "taken", "-s", "train.py"])
    engine.process(["job", "task", "-t", "worker", "--", "python", "train.py"])
    with pytest.raises(ConflictError, match="already exists"):
        engine.process(["job", "submit"])
    assert blobs(pai) == []
    engine.process(["job", "submit", "--unique"])
    assert blobs(pai)


def test_nothing_is_looked_up_for_a_name_of_our_own(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("12345")
    engine.process(["job", "sub", "--", "python", "train.py"])
    assert not [path for method, path in pai.calls if method == "GET" and path.startswith("/api/v2/jobs/")]


def test_ctrl_c_while_code_is_sent_says_that_nothing_was_submitted(
    engine: Engine, pai: FakePAI, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("openpaisdk.workspace.shipping._send", interrupted)
    assert main(["job", "sub", "-j", "one", "--", "true"], engine) == 130
    assert capsys.readouterr().err.splitlines() == ["stopped; nothing was submitted"]
    assert not pai.jobs
