"""The runtime inside a job: order of callbacks, signals, conditions; also under the oldest Python."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import openpaisdk.runtime
from openpai.runtime import Runtime

IN_JOB = {
    "PAI_JOB_NAME": "ann~train",
    "PAI_CURRENT_TASK_ROLE_NAME": "worker",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
}


def recorded(environ: dict[str, str], main=lambda: "result") -> tuple[Runtime, list[object]]:
    app, seen = Runtime(environ), []
    app.on("start")(lambda: seen.append("start"))
    app.on("main")(main)
    app.on("end")(lambda: seen.append("end"))
    app.on("exception")(lambda error: seen.append(f"exception {error}"))
    app.on("exit")(lambda code: seen.append(f"exit {code}"))
    return app, seen


def test_outside_a_job_run_simply_calls_main() -> None:
    app, seen = recorded({})
    assert app.run() == "result"
    assert seen == []


def test_callbacks_surround_main() -> None:
    app, seen = recorded(IN_JOB)
    assert app.run() == "result"
    assert seen == ["start", "end", "exit 0"]


def test_an_exception_is_told_and_goes_on() -> None:
    def main() -> None:
        raise ValueError("broken")

    app, seen = recorded(IN_JOB, main)
    with pytest.raises(ValueError, match="broken"):
        app.run()
    assert seen == ["start", "exception broken", "exit 1"]


def test_sys_exit_gives_its_code_to_exit() -> None:
    app, seen = recorded(IN_JOB, lambda: sys.exit(7))
    with pytest.raises(SystemExit):
        app.run()
    assert seen == ["start", "exit 7"]


def test_a_failing_exit_callback_does_not_hide_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    app, _ = recorded(IN_JOB)
    app.on("exit")(lambda code: 1 / 0)
    assert app.run() == "result"
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_conditions_choose_role_index_and_place() -> None:
    app = Runtime(IN_JOB)
    called = []
    app.on("start", role="ps")(lambda: called.append("ps"))
    app.on("start", role=["worker"], index=1)(lambda: called.append("worker/1"))
    app.on("start", place="local")(lambda: called.append("local"))
    app.on("start", when=lambda app: app.place.user == "ann")(lambda: called.append("ann"))
    app.on("main")(lambda: None)
    app.run()
    assert called == ["worker/1", "ann"]


def test_unknown_event_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown event 'begin'.*start, main"):
        Runtime({}).on("begin")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"place": "moon"}, r"unknown place 'moon'; the places are: local, interactive, batch"),
        ({"place": ["batch", "moon"]}, "unknown place 'moon'"),
        ({"index": "a"}, r"index 'a' is not that of a task; indexes are numbers: 0, 1, 2 \.\.\."),
        ({"index": "1"}, "index '1' is not"),
        ({"index": [0, -1]}, "index -1 is not"),
    ],
)
def test_a_condition_that_never_holds_is_refused(condition: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Runtime({}).on("start", **condition)


def test_generated_commands_run_where_no_callback_replaces_them(tmp_path: Path) -> None:
    (tmp_path / "pre.sh").write_text(f"echo pre >> {tmp_path}/seen\n")
    (tmp_path / "post.sh").write_text(f"echo post >> {tmp_path}/seen\n")
    app = Runtime({**IN_JOB, "PAI_SDK_TASK_DIR": str(tmp_path)})
    app.on("main")(lambda: None)
    app.on("end")(lambda: None)
    app.run()
    assert (tmp_path / "seen").read_text() == "pre\n"


def test_the_place_knows_role_and_peers() -> None:
    place = Runtime(
        {
            **IN_JOB,
            "PAI_TASK_ROLE_INSTANCES": "ps:0,worker:0,worker:1",
            "PAI_HOST_IP_worker_1": "10.0.0.5",
            "PAI_PORT_LIST_worker_1_http": "1234,1235",
        }
    ).place
    assert (place.kind, place.user, place.job, place.role, place.index) == (
        "batch",
        "ann",
        "train",
        "worker",
        1,
    )
    assert [f"{peer.role}/{peer.index}" for peer in place.peers("Worker")] == ["worker/0", "worker/1"]
    assert place.peers()[2].address() == "10.0.0.5:1234"
    with pytest.raises(KeyError, match="has no port 'ssh'; it has: http"):
        place.peers()[2].address("ssh")


def test_checkpoints_are_published_whole_and_found_again(tmp_path: Path) -> None:
    environ = {**IN_JOB, "PAI_SDK_JOB_OUTPUT_DIR": str(tmp_path)}
    model = tmp_path / "model.bin"
    for step in range(4):
        model.write_text(f"step {step}")
        Runtime(environ).checkpoints.publish(str(model))
    found = Runtime(environ).checkpoints.last()
    assert found is not None and Path(found).read_text() == "step 3"
    assert len(os.listdir(tmp_path / ".checkpoints" / "worker-1")) == 2
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Runtime(environ).checkpoints.publish("nowhere")


def test_outside_a_job_checkpoints_are_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Runtime({"TMPDIR": "/elsewhere"}).checkpoints.folder == str(tmp_path / ".checkpoints" / "local-0")
    chosen = Runtime({"PAI_SDK_JOB_OUTPUT_DIR": "/chosen"})
    assert chosen.checkpoints.folder == "/chosen/.checkpoints/local-0"


def test_logging_is_kept_with_levels(tmp_path: Path) -> None:
    program = (
        "import logging\nfrom openpai.runtime import Runtime\n"
        "print(Runtime.capture_logging())\n"
        "logging.getLogger('net').info('loss %d', 3)\nlogging.warning('careful')\n"
    )
    done = run_shipped(program, tmp_path, sys.executable)
    records = [json.loads(line) for line in (tmp_path / "task" / "logging.jsonl").read_text().splitlines()]
    assert [(r["level"], r["logger"], r["message"]) for r in records] == [
        ("INFO", "net", "loss 3"),
        ("WARNING", "root", "careful"),
    ]
    assert done.stderr.strip() == "careful"  # what the program shows by itself is unchanged


PREEMPTED = """
import os, signal, time
from openpai.runtime import Runtime
app = Runtime.from_env()
@app.on('preempt')
def save(seconds):
    print('preempt', seconds, flush=True)
@app.on('exit')
def bye(code):
    print('exit', code, flush=True)
@app.on('checkpoint')
def mark():
    print('checkpoint', flush=True)
@app.on('main')
def main():
    with open(os.path.join(os.environ['PAI_SDK_TASK_DIR'], 'checkpoint.pid')) as file:
        os.kill(int(file.read()), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
app.run()
"""


def run_shipped(program: str, folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with the runtime as it is shipped: the folder alone, under the name openpai.runtime."""
    shipped, task = folder / "shipped", folder / "task"
    shutil.copytree(Path(openpaisdk.runtime.__file__).parent, shipped / "openpai" / "runtime")
    (shipped / "openpai" / "__init__.py").write_text("")
    task.mkdir()
    environ = {
        **IN_JOB,
        "PYTHONPATH": str(shipped),
        "PAI_SDK_TASK_DIR": str(task),
        "PAI_SDK_GRACE_SECONDS": "12",
    }
    return subprocess.run(
        [python, "-c", program],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("version", ["3.6", "3.8", "3.10", "3.13", "this one"])
def test_signals_reach_callbacks_under_every_python(version: str, tmp_path: Path) -> None:
    python = sys.executable if version == "this one" else find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    done = run_shipped(PREEMPTED, tmp_path, python)
    assert done.stdout.splitlines() == ["checkpoint", "preempt 12.0", "exit 143"], done.stderr
    assert done.returncode == 143 or done.returncode == -signal.SIGTERM
    assert not (tmp_path / "task" / "checkpoint.pid").exists()


def find_python(version: str) -> str | None:
    for candidate in (
        shutil.which(f"python{version}"),
        *Path(os.environ.get("PYENV_ROOT", "/nonexistent")).glob(f"versions/{version}.*/bin/python"),
    ):
        if candidate and subprocess.run([str(candidate), "-c", "pass"], capture_output=True).returncode == 0:
            return str(candidate)
    return None
