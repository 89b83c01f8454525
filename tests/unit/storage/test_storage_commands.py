"""`opai storage` and `opai output` through the Engine, on a file server and on the embedded cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.cli.main import main
from openpaisdk.commands.transfers import outcome_words, progress_line
from openpaisdk.engine import Engine
from openpaisdk.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    OpenPAIError,
    UnavailableError,
    UsageError,
)
from openpaisdk.storage import Progress


def opai(*words: str) -> Any:
    return Engine().process(list(words))


def test_ctrl_c_says_how_to_go_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for command in ("upload", "download"):
        monkeypatch.setattr(f"openpaisdk.storage.trees.{command}", interrupted, raising=False)
        monkeypatch.setattr(f"openpaisdk.storage.{command}", interrupted, raising=False)
        assert main(["storage", command, ".", "x"]) == 130
        assert "the same command again goes on" in capsys.readouterr().err


def test_files_go_there_are_looked_at_and_come_back(here: Path) -> None:
    (here / "code/sub").mkdir(parents=True)
    (here / "code/a.py").write_text("a")
    (here / "code/sub/b.py").write_text("bb")
    (here / "code/.gitignore").write_text("*.log\n")
    (here / "code/x.log").write_text("no")
    assert opai("storage", "upload", "code", "up")["copied"] == 3
    assert [row["name"] for row in opai("storage", "list", "up")] == [".gitignore", "a.py", "sub"]
    status = opai("storage", "status", "up/a.py")
    assert (status["type"], status["size"], len(status["sha256"])) == ("file", 1, 64)
    assert opai("storage", "upload", "code", "up")["skipped"] == 3
    assert opai("storage", "upload", "--no-ignore", "code", "up")["copied"] == 1
    assert opai("storage", "download", "up", "back")["copied"] == 4
    assert (here / "back/sub/b.py").read_text() == "bb"
    assert opai("storage", "mkdir", "new/er")[0].endswith("/new/er")
    with pytest.raises(ConflictError, match="not empty"):
        opai("storage", "delete", "up")
    opai("storage", "delete", "-r", "up", "new")
    assert opai("storage", "list") == []


def test_local_addresses_work_without_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert [row["name"] for row in opai("storage", "list", f"file://{tmp_path}")] == ["a"]
    opai("storage", "upload", str(tmp_path / "a"), f"file://{tmp_path}/b")
    assert (tmp_path / "b").read_text() == "x"


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["list", "gone"], NotFoundError, "does not exist"),
        (["list", "/user/bob"], AccessError, "belongs to bob"),
        (["list", "../../x"], UsageError, "climbs out"),
        (["list", "s3://bucket/x"], UsageError, "not installed"),
        (["list", "nonsense://x"], UsageError, "nonsense"),
        (["list", "webhdfs://127.0.0.1:1/x"], UnavailableError, "connection refused"),
        (["upload", "gone.txt"], NotFoundError, "gone.txt"),
        (["delete", "gone"], NotFoundError, "gone"),
        (["delete", "/"], UsageError, "never deleted"),
        (["upload", "--workers", "0", "."], UsageError, "--workers"),
    ],
)
def test_bad_input_gets_a_sentence(here: Path, words: list[str], kind: type[OpenPAIError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        opai("storage", *words)
    assert caught.value.exit_code != 0


def test_a_full_disk_is_said_and_nothing_is_left(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from openpaisdk.storage import local

    (here / "a").write_bytes(bytes(1000))

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local.os, "fsync", full)
    with pytest.raises(OpenPAIError, match="the disk is full"):
        opai("storage", "upload", "a", f"file://{here}/b")
    assert not (here / "b").exists()
    monkeypatch.undo()
    os.chdir(here)
    opai("storage", "upload", "a", f"file://{here}/b")
    assert (here / "b").read_bytes() == bytes(1000)


def test_progress_tells_rate_and_time_left() -> None:
    progress = Progress()
    progress.files, progress.bytes = 4, 4_000_000
    progress.add(1_000_000, 1)
    line = progress_line(progress, 2.0)
    assert "25%" in line and "1/4 files" in line and "/s" in line and "6.0 s left" in line
    assert "1 file copied" in outcome_words({"copied": 1, "skipped": 2, "bytes": 10})


def test_outputs_of_a_job_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    script = 'cd "$PAI_SDK_JOB_OUTPUT_DIR" && mkdir -p m && echo w > m/a.pt && echo said && echo no >&2'
    opai("job", "sub", "--wait", "--no-source", "-j", "one", script)
    assert [row["name"] for row in opai("output", "list")] == ["m/a.pt"]
    assert opai("output", "download", "--to", "got")["copied"] == 1
    assert (tmp_path / "work/got/m/a.pt").read_text() == "w\n"
    assert opai("output", "download", "-j", "one", "m")["to"] == "one"
    assert opai("output", "peek", "--stdout") == {"job": "one", "stdout": "said\n"}
    assert script in opai("output", "peek", "--stdin", "--save", "given.sh")["stdin"]
    assert script in (tmp_path / "work/given.sh").read_text()
    with pytest.raises(NotFoundError, match=r"left no output 'b\.pt'"):
        opai("output", "download", "b.pt")
    with pytest.raises(NotFoundError, match="nobody"):
        opai("output", "list", "-j", "nobody")
    opai("server", "stop")
