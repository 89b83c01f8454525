"""The wrapper as text and as a program: in every shell it may meet."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openpaisdk.errors import UsageError
from openpaisdk.launchers.folder import TaskFolder
from openpaisdk.launchers.wrapper import (
    enter_argv,
    inherited_environment,
    render_env,
    render_wrapper,
    task_environment,
)

SHELLS = [
    pytest.param(argv, id=argv[-1].rpartition("/")[2])
    for argv in (["/bin/sh"], ["bash", "--posix"], ["busybox", "sh"])
    if shutil.which(argv[0])
]


def prepared(folder: Path, script: str, env: dict[str, str] | None = None, **wrapper: object) -> TaskFolder:
    task = TaskFolder(str(folder))
    text = render_wrapper(task.path, f"{task.path}/work", **wrapper)  # type: ignore[arg-type]
    task.prepare({"run.sh": text, "env.sh": render_env(env or {}), "script.sh": script.encode()})
    return task


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 41", 41), ("kill -TERM $$", 143), ("nosuchprogram", 127)]
)
def test_the_exit_is_recorded(tmp_path: Path, shell: list[str], script: str, code: int) -> None:
    task = prepared(tmp_path / "a b'c", script)
    ended = subprocess.run([*shell, task.file("run.sh")], check=False)
    found = task.recorded_exit()
    assert found and (found.code, ended.returncode) == (code, code)
    assert json.loads(Path(task.file("started.json")).read_text())["pid"] > 1


@pytest.mark.parametrize("shell", SHELLS)
def test_only_the_first_wrapper_runs(tmp_path: Path, shell: list[str]) -> None:
    task = prepared(tmp_path / "task", "echo ran")
    racing = [subprocess.Popen([*shell, task.file("run.sh")]) for _ in range(8)]
    assert [one.wait() for one in racing] == [0] * 8
    assert Path(task.file("stdout")).read_text() == "ran\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_stop_that_came_first_is_heeded(tmp_path: Path, shell: list[str]) -> None:
    task = prepared(tmp_path / "task", "echo ran")
    task.ask_to_stop()
    subprocess.run([*shell, task.file("run.sh")], check=False)
    found = task.recorded_exit()
    assert found and found.code == 143
    assert Path(task.file("stdout")).read_text() == ""


def test_without_bash_plain_sh_still_stops_at_failures(tmp_path: Path) -> None:
    task = prepared(tmp_path / "task", "false\necho no", shells=["/nowhere/bash"])
    assert subprocess.run(["/bin/sh", task.file("run.sh")], check=False).returncode == 1
    assert Path(task.file("stdout")).read_text() == ""


def test_the_oom_counter_is_read_at_the_end(tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("max 3\noom 2\noom_kill 2\noom_group_kill 0\n")
    killed = prepared(tmp_path / "killed", "exit 137", oom_counters=[str(tmp_path / "none"), str(counter)])
    fine = prepared(tmp_path / "fine", "exit 0", oom_counters=[str(counter)])
    for task in (killed, fine):
        subprocess.run(["/bin/sh", task.file("run.sh")], check=False)
    assert (killed.recorded_exit().oom, fine.recorded_exit().oom) == (True, False)  # type: ignore[union-attr]


def test_limits_are_set_for_the_script_only(tmp_path: Path) -> None:
    text = render_wrapper("/t", "/t/work", cgroups=["/c/a b"], data_limit_kb=1024).decode()
    before, _, after = text.partition("(\n")
    assert "ulimit" not in before and "cgroup.procs" not in before
    assert "    echo 0 > '/c/a b/cgroup.procs'\n    ulimit -d 1024\n" in after


values = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.from_regex(r"X_[A-Za-z0-9_]{1,8}", fullmatch=True), values, max_size=5))
def test_variables_survive_the_shell(env: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        task = prepared(Path(folder, "task"), "env -0", env)
        subprocess.run(["/bin/sh", task.file("run.sh")], check=True, env={"PATH": "/usr/bin:/bin"})
        printed = Path(task.file("stdout")).read_bytes().decode().split("\0")
    assert {
        name: value for line in printed if line for name, _, value in [line.partition("=")]
    }.items() >= env.items()


def test_names_no_shell_can_hold_are_left_out_and_nul_is_refused() -> None:
    assert render_env({"a-b": "1", "": "2", "1x": "3", "ok": "4"}) == b"export ok=4\n"
    with pytest.raises(UsageError, match="SECRET"):
        render_env({"SECRET": "a\0b"})


def test_what_only_a_launcher_knows() -> None:
    env = task_environment({"A": "1", "CUDA_VISIBLE_DEVICES": "9"}, folder="/t", workdir="/w", gpus=(2, 3))
    assert (
        env["CUDA_VISIBLE_DEVICES"] == "2,3"
        and env["PAI_WORK_DIR"] == "/w"
        and env["OPAI_TASK_FOLDER"] == "/t"
    )
    assert inherited_environment({"PATH": "p", "OPAI_TOKEN": "t", "PAI_JOB_NAME": "j"}) == {"PATH": "p"}


def test_entering_runs_the_command_as_it_is(tmp_path: Path) -> None:
    task = prepared(tmp_path / "task", "true", {"WORD": "it's"})
    argv = enter_argv(task.path, f"{task.path}/work", ["sh", "-c", 'echo "$WORD $1 $PWD"', "x", "a  b"])
    assert subprocess.check_output(argv, text=True) == f"it's a  b {task.path}/work\n"
    shell = enter_argv(task.path, f"{task.path}/work", [])
    assert subprocess.check_output(shell, input="echo $WORD", text=True) == "it's\n"
