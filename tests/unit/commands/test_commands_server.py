"""The server commands, with the embedded cluster pretended; tests/e2e has the real one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from openpaisdk import local
from openpaisdk.cli.main import main
from openpaisdk.config import ClusterConfig
from openpaisdk.engine import Engine
from openpaisdk.errors import NotFoundError, UsageError

STATUS = {
    "running": True,
    "pid": 4711,
    "uri": "http://127.0.0.1:5000",
    "version": "1.0.0",
    "data_dir": "/data",
    "launcher": "process",
    "log": "/log",
    "started_at": 0,
    "token": "hidden",
    "capacity": {"cpu": 2, "memory_mb": 24576, "gpu": 1},
    "load": {"cpu": 1, "gpu": 0},
    "jobs": {"RUNNING": 3, "WAITING": 0},
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    started = ClusterConfig("local", "http://127.0.0.1:5000", extra={"started": STATUS["capacity"]})

    def start(options: list[str]) -> ClusterConfig:
        made.append(options)
        return started

    monkeypatch.setattr(local, "ensure", lambda: made.append("ensure") or started)
    monkeypatch.setattr(local, "start", start)
    monkeypatch.setattr(local, "stop", lambda: made.append("stop") or {"pid": 1})
    monkeypatch.setattr(local, "reset", lambda: made.append("reset"))
    monkeypatch.setattr(local, "status", lambda: dict(STATUS))
    return made


def test_start(
    calls: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["server", "start"]) == 0
    assert "local cluster started (2 CPUs, 24 GB, 1 GPU)" in capsys.readouterr().err
    assert main(["server", "start", "--fake-gpus", "4", "--data-dir", "here", "--launcher", "process"]) == 0
    assert calls == [
        "ensure",
        ["--data-dir", str(tmp_path / "here"), "--launcher", "process", "--fake-gpus", "4"],
    ]


def test_start_for_others_stays_in_the_foreground(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    import subprocess

    class Pretended:
        def __init__(self, words: list[str]) -> None:
            calls.append(words[1:])
            self.waits = 0

        def wait(self) -> int:
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt
            return -15

    monkeypatch.setattr(subprocess, "Popen", Pretended)
    monkeypatch.setattr("os.execv", lambda program, words: calls.append(words[1:]))
    words = ["server", "start", "--host", "0.0.0.0", "--port", "9186", "--insecure"]
    assert Engine().process(words) == {"exitCode": -15}
    started = ["-m", "openpaisdk.server", *words[2:]]
    assert calls == [started]
    assert main(words) == 143
    assert calls == [started, started, started], "the command line is replaced by the server"


def test_status_hides_the_token(calls: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "status"]) == 0
    shown = capsys.readouterr().out
    for part in (
        "http://127.0.0.1:5000",
        "4711",
        "1.0.0",
        "/data",
        "process",
        "2 CPUs, 24 GB, 1 GPU",
        "running 3",
    ):
        assert part in shown
    main(["server", "status", "-o", "json"])
    assert json.loads(capsys.readouterr().out) == Engine().process(["server", "status"])
    assert "token" not in Engine().process(["server", "status"])


def test_not_running(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(local, "status", lambda: {"running": False, "data_dir": "/data", "log": "/log"})
    assert main(["server", "status"]) == 0
    assert capsys.readouterr().out.startswith("not running\n")
    monkeypatch.setattr(local, "stop", lambda: None)
    assert Engine().process(["server", "stop"]) == {"stopped": False}


def test_stop_and_reset(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert Engine().process(["server", "stop"]) == {"stopped": True}
    with pytest.raises(UsageError, match="Nobody can be asked"):
        Engine().process(["server", "reset"])
    assert calls == ["stop"]
    assert Engine().process(["server", "reset", "--yes"]) == {"reset": True}

    class No(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", No("n\n"))
    assert main(["server", "reset"]) == 2
    monkeypatch.setattr("sys.stdin", No("y\n"))
    assert main(["server", "reset"]) == 0
    assert calls == ["stop", "reset", "reset"]


def test_logs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = tmp_path / "server.log"
    monkeypatch.setattr(local, "log_path", lambda: str(target))
    with pytest.raises(NotFoundError, match=r"server\.log"):
        Engine().process(["server", "logs"])
    target.write_text("".join(f"line {n}\n" for n in range(300)))
    assert Engine().process(["server", "logs", "--tail", "2"]) == ["line 298", "line 299"]
    assert len(Engine().process(["server", "logs"])) == 100
    assert len(Engine().process(["server", "logs", "--tail", "0"])) == 300


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ({"RUNNING": 2}, "local cluster stopped; running tasks go on\n"),
        ({"RUNNING": 0, "SUCCEEDED": 4}, "local cluster stopped\n"),
        (None, "local cluster stopped; running tasks go on\n"),
    ],
)
def test_stop_speaks_of_running_tasks_only_where_there_are_some(
    jobs: Any, said: str, calls: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(local, "status", lambda: {**STATUS, "jobs": jobs})
    assert main(["server", "stop"]) == 0
    assert capsys.readouterr().err == said
