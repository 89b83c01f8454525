"""What the job commands do and say, against a cluster in memory."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.cli.main import main
from openpaisdk.commands import following
from openpaisdk.commands.context import Context
from openpaisdk.core import WaitTimeout
from openpaisdk.engine import Engine
from openpaisdk.errors import ConflictError, InvalidJobError, NotFoundError, QuotaError, UsageError
from openpaisdk.job.words import install_lines
from support.fake_pai import FakePAI, engine_for

JOB = """\
protocolVersion: 2
name: hello
type: job
prerequisites: [{type: dockerimage, name: img, uri: ubuntu}]
secrets: {key: hidden-value}
taskRoles:
  worker:
    instances: 1
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: ["echo <% $secrets.key %>"]
"""
V1 = {
    "jobName": "old",
    "image": "ubuntu",
    "taskRoles": [{"name": "main", "taskNumber": 2, "command": "true"}],
}


def test_sub_prints_the_name_alone(engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "sub", "--no-source", "--", "python", "train.py"], engine) == 0
    shown = capsys.readouterr()
    (job,) = pai.jobs.values()
    assert shown.out == f"{job['name']}\n"
    assert job["name"].startswith("train-")
    assert "opai job logs -f" in shown.err


def test_sub_in_the_home_folder_says_that_no_code_goes_along(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "train.py").touch()
    assert main(["job", "sub", "--", "python", "train.py"], engine) == 0
    assert "home folder is never sent" in capsys.readouterr().err
    assert main(["job", "sub", "--", "nvidia-smi"], engine) == 0
    assert "home folder" not in capsys.readouterr().err, "it needs no file of the folder"


def test_sub_shows_how_much_code_goes_before_it_goes(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("12345")
    screen = StringIO()
    engine.run(
        ["job", "sub", "-j", "one", "--", "true"],
        lambda output: Context(talk=screen, terminal=True, open_cluster=engine.open_cluster),
    )
    shown = screen.getvalue()
    assert shown.index("one  code 1 file, 5 B") < shown.index("submitted")


def test_names_are_never_the_same(engine: Engine, pai: FakePAI) -> None:
    for _ in range(20):
        engine.process(["job", "sub", "--no-source", "python", "train.py"])
    assert len(pai.jobs) == 20


def test_sub_options_reach_the_spec(engine: Engine) -> None:
    words = "-j n -i ubuntu -n 2 --gpu 1 --cpu 3 --mem 2GB --port web=2 -t main -p numpy --env A=b=c --vc lab"
    spec = engine.process(
        ["job", "sub", "--dry-run", *words.split(), "--retries", "3", "--priority", "test", "ls"]
    )
    assert spec["taskRoles"]["main"] == {
        "instances": 2,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 3, "memoryMB": 2048, "gpu": 1, "ports": {"web": 2}},
        "commands": ["export A=b=c", *install_lines(["numpy"]), "ls"],
    }
    assert spec["prerequisites"] == [{"type": "dockerimage", "name": "image", "uri": "ubuntu"}]
    assert spec["defaults"] == {"virtualCluster": "lab"}
    assert spec["jobRetryCount"] == 3
    assert spec["extras"]["hivedScheduler"] == {"jobPriorityClass": "test"}


def test_defaults_fill_what_was_not_said(engine: Engine) -> None:
    engine.process(["default", "add", "image=pytorch/pytorch", "gpu=2", "mem=8GB"])
    spec = engine.process(["job", "sub", "--dry-run", "--gpu", "1", "ls"])
    assert spec["prerequisites"][0]["uri"] == "pytorch/pytorch"
    assert spec["taskRoles"]["worker"]["resourcePerInstance"] == {"cpu": 1, "memoryMB": 8192, "gpu": 1}


def test_follow_shows_the_jobs_own_output(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.logs["t"] = [
        ("worker/0", "stdout", "epoch 1\n50%\r"),
        ("worker/0", "stderr", "warn\n"),
        ("worker/0", "stdout", "100%\n"),
    ]
    assert main(["job", "sub", "--no-source", "-j", "t", "--follow", "ls"], engine) == 0
    shown = capsys.readouterr()
    assert shown.out == "epoch 1\n50%\r100%\n"
    assert shown.err == "warn\nt  succeeded in 4.2 s · opai output download -j t\n"


@pytest.mark.parametrize(("flag", "exit_code", "word"), [("--follow", 3, "failed"), ("--wait", 3, "failed")])
def test_outcome_is_the_exit_code(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str], flag: str, exit_code: int, word: str
) -> None:
    pai.outcomes["t"] = exit_code
    assert main(["job", "sub", "--no-source", "-j", "t", flag, "ls"], engine) == 10
    assert "t  failed with exit code 3 in 4.2 s · opai job why t" in capsys.readouterr().err


def test_follow_marks_lines_of_several_tasks(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.logs["t"] = [
        ("worker/0", "stdout", "a"),
        ("worker/1", "stdout", "b\nc"),
        ("worker/0", "stdout", "a\n"),
        ("worker/1", "stdout", "c"),
    ]
    assert main(["job", "sub", "--no-source", "-j", "t", "-n", "2", "--follow", "ls"], engine) == 0
    assert capsys.readouterr().out == "worker/1  b\nworker/0  aa\nworker/1  cc\n"


def test_json_with_follow_keeps_stdout_clean(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.logs["t"] = [("worker/0", "stdout", "epoch 1\n")]
    assert main(["job", "sub", "--no-source", "-j", "t", "--follow", "-o", "json", "ls"], engine) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["state"] == "SUCCEEDED"
    assert "epoch 1\n" in shown.err


def test_ctrl_c_while_following_leaves_the_job(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("openpaisdk.job.Job.logs", interrupted)
    assert main(["job", "sub", "--no-source", "-j", "t", "--follow", "ls"], engine) == 130
    assert "t goes on" in capsys.readouterr().err
    assert pai.jobs["ann~t"]["executionType"] == "START"


def test_submit_files(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB)
    (tmp_path / "b.json").write_text(json.dumps(V1))
    rows = engine.process(
        [
            "job",
            "submit",
            "--config",
            "a.yaml",
            "b.json",
            "--set",
            "jobRetryCount=2",
            "--set",
            "description=a=b",
        ]
    )
    assert [row["name"] for row in rows] == ["hello", "old"]
    spec = pai.jobs["ann~hello"]["spec"]
    assert (spec["jobRetryCount"], spec["description"]) == (2, "a=b")
    assert pai.jobs["ann~old"]["spec"]["taskRoles"]["main"]["instances"] == 2


def test_submit_from_standard_input(engine: Engine, pai: FakePAI, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Typed(io.StringIO):
        buffer = io.BytesIO(JOB.encode())

    monkeypatch.setattr("sys.stdin", Typed(JOB))
    assert engine.process(["job", "submit", "--config", "-", "-j", "other"])[0]["name"] == "other"


def test_nothing_is_sent_when_one_file_is_wrong(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB)
    (tmp_path / "b.yaml").write_text(JOB.replace("instances: 1", "instances: two"))
    with pytest.raises(InvalidJobError) as caught:
        engine.process(["job", "submit", "--config", "a.yaml", "--config", "b.yaml"])
    assert "b.yaml:8:16: taskRoles.worker.instances" in str(caught.value.problems[0])
    assert pai.jobs == {}


def test_dry_run_masks_secrets(
    engine: Engine, pai: FakePAI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(JOB)
    assert main(["job", "submit", "--config", "a.yaml", "--dry-run"], engine) == 0
    shown = capsys.readouterr()
    assert "hidden-value" not in shown.out + shown.err
    assert "******" in shown.out
    assert pai.calls == []


def test_missing_and_broken_files(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nowhere\.yaml"):
        engine.process(["job", "submit", "--config", "nowhere.yaml"])
    (tmp_path / "broken.yaml").write_text("a: [1,\nb: }")
    with pytest.raises(InvalidJobError) as caught:
        engine.process(["job", "submit", "--config", "broken.yaml"])
    assert "broken.yaml" in str(caught.value.problems[0])


def test_name_in_use(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB)
    engine.process(["job", "submit", "--config", "a.yaml"])
    with pytest.raises(ConflictError) as caught:
        engine.process(["job", "submit", "--config", "a.yaml"])
    assert "hello" in caught.value.message
    assert "--unique" in (caught.value.hint or "")
    assert engine.process(["job", "submit", "--config", "a.yaml", "--unique"])[0]["name"].startswith("hello-")


def test_step_by_step(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    engine.process(["job", "create", "-j", "steps", "-i", "ubuntu", "-p", "numpy"])
    with pytest.raises(UsageError, match="no task role yet"):
        engine.process(["job", "submit"])
    with pytest.raises(ConflictError, match="already been begun"):
        engine.process(["job", "create", "-j", "steps"])
    engine.process(["job", "task", "-t", "ps", "-n", "2", "python", "ps.py", "--port", "1"])
    engine.process(["job", "task", "-t", "worker", "--gpu", "1", "--", "python", "worker.py"])
    (row,) = engine.process(["job", "submit"])
    assert row["name"] == "steps"
    kept = json.loads((tmp_path / ".openpai/jobs/steps/config.json").read_text())
    assert kept == pai.jobs["ann~steps"]["spec"]
    assert kept["taskRoles"]["ps"]["commands"][-1] == "python ps.py --port 1"
    with pytest.raises(NotFoundError, match="no job has been begun"):
        engine.process(["job", "submit"])


def test_a_draft_survives_a_refused_submit(engine: Engine, pai: FakePAI) -> None:
    pai.add("steps")
    engine.process(["job", "create", "-j", "steps"])
    engine.process(["job", "task", "-t", "worker", "ls"])
    with pytest.raises(ConflictError):
        engine.process(["job", "submit"])
    assert engine.process(["job", "submit", "--set", "name=steps2"])[0]["name"] == "steps2"


@pytest.mark.parametrize("name", ["../evil", "a/b", "a b", ".."])
def test_a_draft_stays_in_its_folder(engine: Engine, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        engine.process(["job", "create", "-j", name])


def test_validate_prints_every_problem(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.yaml").write_text(JOB)
    (tmp_path / "bad.yaml").write_text(
        JOB.replace("instances: 1", "instances: two").replace("dockerImage: img", "dockerImage: nope")
    )
    assert main(["job", "validate", "good.yaml", "bad.yaml"], engine) == 2
    shown = capsys.readouterr()
    assert "good.yaml: fine" in shown.err
    lines = shown.out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("bad.yaml:") for line in lines)
    assert main(["job", "validate", "good.yaml"], engine) == 0


def test_nothing_is_sent_or_written_for_a_job_that_is_not_valid(
    engine: Engine, pai: FakePAI, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("x")
    with pytest.raises(InvalidJobError, match="nothing was submitted"):
        engine.process(["job", "sub", "-s", "train.py", "-j", "bad name", "--", "python", "train.py"])
    engine.process(["job", "create", "-j", "step", "-s", "train.py"])
    engine.process(["job", "task", "-t", "My Role", "--", "x"])
    with pytest.raises(InvalidJobError, match="nothing was submitted"):
        engine.process(["job", "submit"])
    assert pai.calls == []
    assert not (tmp_path / ".openpai/jobs/step/config.json").exists()


def test_references_to_nothing_are_warned_about(
    engine: Engine, pai: FakePAI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = JOB.replace("type: job", "type: job\nparameters: {steps: 5}")
    (tmp_path / "job.yaml").write_text(text.replace("$secrets.key", "$parameters.step"))
    assert main(["job", "validate", "job.yaml"], engine) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("warning: job.yaml:")
    assert "`$parameters.step`" in shown.out and "did you mean `steps`?" in shown.out
    assert shown.err == "job.yaml: can be submitted\n"
    assert main(["job", "submit", "--config", "job.yaml"], engine) == 0
    assert "warning: job.yaml:" in capsys.readouterr().err


def test_list_columns(engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]) -> None:
    pai.add("one")
    pai.add("theirs", user="bob", state="FAILED", exit=255)
    main(["job", "list"], engine)
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "STATE", "VC", "GPUS", "TASKS", "RETRIES", "SUBMITTED", "RAN", "EXIT"]
    assert row.split()[:5] == ["one", "running", "default", "0", "1"]
    main(["job", "list", "--all-users", "-o", "name"], engine)
    assert capsys.readouterr().out == "one\nbob~theirs\n"
    main(["job", "list", "--user", "bob", "--state", "failed"], engine)
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["theirs", "bob", "failed"]


def test_an_empty_list_is_no_error(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "list"], engine) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "opai job sub" in shown.err


def test_list_pages(engine: Engine, pai: FakePAI) -> None:
    for number in range(1203):
        pai.jobs[f"ann~j{number}"] = {**pai.add("proto"), "name": f"j{number}"}
    del pai.jobs["ann~proto"]
    assert len(engine.process(["job", "list"])) == 1203
    assert engine.process(["job", "list", "--name", "--limit", "3", "--offset", "1201"]) == ["j1201", "j1202"]


def test_detail_for_people(engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]) -> None:
    pai.add("one", state="FAILED", exit=255)
    main(["job", "list", "one"], engine)
    shown = capsys.readouterr().out
    assert shown.startswith("ann~one  failed\n")
    assert "exit code        255" in shown
    assert "worker/0  failed · on node1 · exit code 255" in shown
    main(["job", "list", "one", "config"], engine)
    assert "protocolVersion: 2" in capsys.readouterr().out
    main(["job", "list", "one", "ssh"], engine)
    assert capsys.readouterr() == ("", "no task of one can be reached by ssh now\n")


def test_how_to_reach_tasks(
    engine: Engine, pai: FakePAI, genuine_engine: Engine, genuine: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.add("one")
    main(["job", "list", "one", "ssh"], engine)
    assert "opai job ssh one worker/0" in capsys.readouterr().out
    genuine.add("one")
    main(["job", "list", "one", "ssh"], genuine_engine)
    assert "ssh -p 23660 root@10.0.0.5" in capsys.readouterr().out


def test_a_job_that_has_ended_is_not_said_to_be_stopping(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.add("one")
    pai.add("over", state="SUCCEEDED", exit=0)
    assert main(["job", "stop", "one", "over"], engine) == 0
    assert capsys.readouterr().err == "one is being stopped\nover has succeeded\n"
    assert main(["job", "exec", "over", "--", "ls"], engine) == 4
    assert "no task of over is running (the job has succeeded)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["logs", "-f", "one"], ["wait", "one"], ["sub", "--no-source", "-j", "one", "--follow", "ls"]]
)
def test_ctrl_c_says_that_the_job_goes_on(
    words: list[str],
    engine: Engine,
    pai: FakePAI,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from openpaisdk.core import Cluster

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if words[0] != "sub":
        pai.add("one")
    monkeypatch.setattr(Cluster, "wait", interrupted)
    monkeypatch.setattr(Cluster, "follow", interrupted)
    assert main(["job", *words], engine) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "one goes on · opai job logs -f one · opai job stop one\n"


def test_the_next_step_is_on_the_same_cluster(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "sub", "-a", "lab", "--no-source", "-j", "one", "ls"], engine) == 0
    assert capsys.readouterr().err == "one submitted · opai job logs -f one -a lab\n"
    assert main(["job", "sub", "-a", "lab", "--wait", "--no-source", "-j", "two", "ls"], engine) == 0
    assert capsys.readouterr().err.endswith(" · opai output download -j two -a lab\n")


def test_logs(engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]) -> None:
    pai.add("one")
    pai.logs["one"] = [("worker/0", "stdout", "a\nb"), ("worker/0", "stderr", "oops\n")]
    assert main(["job", "logs", "-f", "one"], engine) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a\nb", "oops\none  succeeded\n")
    assert engine.process(["job", "logs", "-f", "one"]) == [
        {"task": "worker/0", "stream": "stdout", "text": "a"},
        {"task": "worker/0", "stream": "stderr", "text": "oops"},
        {"task": "worker/0", "stream": "stdout", "text": "b"},
    ]
    with pytest.raises(NotFoundError, match="no task ps/0"):
        engine.process(["job", "logs", "one", "--task", "ps/0"])
    with pytest.raises(UsageError, match="does not name a task"):
        engine.process(["job", "logs", "one", "--task", "ps/x"])


def test_wait_takes_the_worst_outcome(engine: Engine, pai: FakePAI) -> None:
    for name in ("good", "bad", "ugly"):
        pai.add(name)
    pai.outcomes["bad"] = 255
    pai.jobs["ann~ugly"]["executionType"] = "STOP"
    assert main(["job", "wait", "good"], engine) == 0
    assert main(["job", "wait", "good", "ugly"], engine) == 11
    assert main(["job", "wait", "good", "bad", "ugly"], engine) == 10


def test_stop_goes_on_after_an_error(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.add("one")
    pai.add("two")
    assert main(["job", "stop", "one", "missing", "two"], engine) == 3
    assert pai.jobs["ann~two"]["executionType"] == "STOP"
    assert "missing" in capsys.readouterr().err


def test_clone(engine: Engine, pai: FakePAI, tmp_path: Path) -> None:
    pai.add("one")
    twin = engine.process(["job", "clone", "one", "--set", "jobRetryCount=1"])
    assert twin["name"].startswith("one-")
    assert pai.jobs[f"ann~{twin['name']}"]["spec"]["jobRetryCount"] == 1
    again = engine.process(["job", "clone", twin["name"]])
    assert again["name"].count("-") == 1
    pai.jobs["ann~one"]["spec"]["secrets"] = "******"
    with pytest.raises(UsageError, match="cannot be read back"):
        engine.process(["job", "clone", "one"])


def test_exec_ends_with_the_commands_code(
    engine: Engine, pai: FakePAI, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pai.add("one")
    assert main(["job", "exec", "one", "worker/0", "--no-stdin", "--", "nvidia-smi", "-L"], engine) == 3
    shown = capfdbinary.readouterr()
    assert (shown.out, shown.err) == (b"nvidia-smi -L\n", b"oh\n")
    assert pai.exec_runs["run-1"]["task"] == "worker/0"
    pai.add("over", state="SUCCEEDED", exit=0)
    with pytest.raises(ConflictError, match="no task of over is running"):
        engine.process(["job", "exec", "over", "--", "ls"])


def test_more_than_the_cluster_has(genuine_engine: Engine, genuine: FakePAI) -> None:
    with pytest.raises(QuotaError) as caught:
        genuine_engine.process(["job", "sub", "--gpu", "9", "--", "python", "train.py"])
    assert caught.value.message == "the job asks for 9 GPUs, this cluster has 4"
    assert (
        caught.value.hint == "it would wait for ever; ask for at most 4, or submit to another cluster with -a"
    )
    assert genuine.jobs == {}
    with pytest.raises(QuotaError, match="asks for 8 GPUs"):
        genuine_engine.process(["job", "sub", "--gpu", "2", "-n", "4", "ls"])
    none = engine_for(FakePAI(gpus=0))
    with pytest.raises(QuotaError, match="this cluster has none"):
        none.process(["job", "sub", "--gpu", "1", "ls"])


def test_genuine_clusters_take_little_code(genuine_engine: Engine, genuine: FakePAI, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hi')")
    genuine_engine.process(["job", "sub", "-j", "fits", "-s", "train.py", "ls"])
    assert "code" in genuine.jobs["ann~fits"]["spec"]["parameters"]["openpaisdk"]
    (tmp_path / "data").write_bytes(os.urandom(200_000))
    with pytest.raises(UsageError, match="this cluster has no other place for code"):
        genuine_engine.process(["job", "sub", "-s", "data", "ls"])
    with pytest.raises(UsageError, match="this cluster has no other place for code"):
        genuine_engine.process(["job", "sub", "python", "train.py"])
    genuine_engine.process(["job", "sub", "-j", "fine", "ls"])
    assert genuine.jobs["ann~fine"]["spec"]["taskRoles"]["worker"]["commands"] == ["ls"]


def test_genuine_exec_goes_by_ssh(
    genuine_engine: Engine, genuine: FakePAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine.add("one")
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexit 7\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert main(["job", "exec", "one", "--", "echo", "a b"], genuine_engine) == 7
    assert (tmp_path / "words").read_text() == "-p 23660 root@10.0.0.5 -- echo 'a b'\n"


def test_who_waits_is_told_of_every_new_attempt() -> None:
    """A program that is killed is started again without end, and nothing else would be heard of it."""

    class Killed:
        name = "t"
        asked = 0

        def wait(self, timeout: float) -> str:
            self.asked += 1
            if self.asked < 4:
                raise WaitTimeout("still running")
            return "over"

        def detail(self) -> dict[str, Any]:
            return {"jobStatus": {"retries": self.asked // 2}}

    talk = StringIO()
    assert following._wait(Killed(), following.Progress("t", Context(talk=talk))) == "over"
    assert talk.getvalue() == "t  starts again, attempt 2 · opai job why t · opai job stop t\n"
