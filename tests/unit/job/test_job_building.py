"""Describing a job: from nothing, a command, a file; every edit; and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openpaisdk import Job
from openpaisdk.errors import InvalidJobError, NotFoundError, UsageError
from openpaisdk.job import DEFAULT_IMAGE
from openpaisdk.job.words import clone_stem, command_text, exports, install_lines, name_stem


def test_from_nothing() -> None:
    job = (
        Job("bert", description="a test")
        .task_role("ps", "python ps.py", instances=2, ports={"data": 1}, image="ubuntu")
        .task_role(
            "worker", ["python worker.py"], gpu=1, image="pytorch", completion={"minSucceededInstances": -1}
        )
        .command("worker", "echo done")
        .parameter("rate", 0.1)
        .secret("key", "value")
        .prerequisite("data", "mnist", ["/data"])
        .deployment("prod", "worker", pre="date", post=["date", "sync"])
        .extra("gangAllocation", False)
        .set("jobRetryCount=3")
    )
    assert job.check() == []
    spec = job.as_dict()
    assert [entry["uri"] for entry in spec["prerequisites"]] == ["ubuntu", "pytorch", ["/data"]]
    assert spec["taskRoles"]["ps"]["dockerImage"] == "image"
    assert spec["taskRoles"]["worker"] == {
        "instances": 1,
        "dockerImage": "image2",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 4096, "gpu": 1},
        "commands": ["python worker.py", "echo done"],
        "completion": {"minSucceededInstances": -1},
    }
    assert spec["deployments"][0]["taskRoles"]["worker"] == {
        "preCommands": ["date"],
        "postCommands": ["date", "sync"],
    }
    assert spec["defaults"] == {"deployment": "prod"}
    assert spec["jobRetryCount"] == 3
    assert Job.from_text(job.to_yaml()).as_dict() == Job.from_text(job.to_json()).as_dict() == spec


def test_replaced_prerequisite_and_unknown_role() -> None:
    job = Job("x").prerequisite("data", "d", ["/a"]).prerequisite("data", "d", ["/b"])
    assert job.spec["prerequisites"] == [{"type": "data", "name": "d", "uri": ["/b"]}]
    with pytest.raises(NotFoundError, match="no task role `worker`"):
        job.command("worker", "ls")


def test_from_command() -> None:
    job = Job.from_command(
        ["python", "train.py", "--name", "a b"], env={"A": "it$me"}, packages=["numpy", "a>1"]
    )
    assert job.check() == []
    assert job.name.startswith("train-")
    assert job.spec["taskRoles"]["worker"]["commands"] == [
        "export A='it$me'",
        install_lines(["numpy", "a>1"])[0],
        "python train.py --name 'a b'",
    ]
    assert job.spec["prerequisites"][0]["uri"] == DEFAULT_IMAGE
    assert job.spec["extras"] == {"openpaisdk": {"image": "default"}, "submitFrom": "openpaisdk"}
    assert "openpaisdk" not in Job.from_command("ls", image="ubuntu").spec["extras"]


def test_names_are_unique() -> None:
    assert len({Job.from_command("python train.py").name for _ in range(200)}) == 200
    assert Job().name != Job().name


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        ("python train.py --lr 0.1", "train"),
        ("python3 -u src/run_bert.py", "run_bert"),
        ("/usr/bin/python -m pytest tests", "pytest"),
        ("bash -c 'echo hi'", "echo"),
        ("CUDA=1 env X=2 ./start.sh", "start"),
        ("torchrun --nproc 2 main.py", "main"),
        ("python", "python"),
        ("", "job"),
        ("&& ||", "&&"),
    ],
)
def test_name_stem(command: str, stem: str) -> None:
    assert name_stem(command) == stem


@given(st.text(max_size=60))
def test_any_command_gives_a_valid_name(command: str) -> None:
    job = Job.from_command(command if command.strip() else "x")
    assert not [problem for problem in job.check() if problem.path == "name"]


def test_words() -> None:
    assert command_text("a && b") == "a && b"
    assert command_text(["a && b"]) == "a && b"
    assert command_text(["a", "b c"]) == "a 'b c'"
    assert exports({"A": "1"}) == ["export A=1"]
    assert install_lines([]) == []
    assert clone_stem("train-0123abcd") == "train"
    assert clone_stem("train-large") == "train-large"


def test_from_file(tmp_path: Path) -> None:
    target = tmp_path / "job.yaml"
    target.write_text(Job.from_command("ls", name="x").to_yaml().replace("instances: 1", "instances: many"))
    problems = Job.from_file(target).check()
    assert [problem.path for problem in problems] == ["taskRoles.worker.instances"]
    assert problems[0].line is not None
    with pytest.raises(InvalidJobError) as caught:
        Job.from_file(target).submit(None)
    assert caught.value.problems[0].path == "taskRoles.worker.instances"
    target.write_text("- a list")
    with pytest.raises(InvalidJobError):
        Job.from_file(target)


def test_from_v1_file(tmp_path: Path) -> None:
    target = tmp_path / "old.json"
    old = {
        "jobName": "old",
        "image": "ubuntu",
        "taskRoles": [{"name": "main", "taskNumber": 2, "command": "true"}],
    }
    target.write_text(json.dumps(old))
    job = Job.from_file(target)
    assert job.spec["protocolVersion"] == 2
    assert job.check() == []
    target.write_text(
        json.dumps({**old, "taskRoles": [{"name": "main", "taskNumber": -1, "command": "true"}]})
    )
    with pytest.raises(InvalidJobError):
        Job.from_file(target)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="gpu: expected a whole number"):
        Job("x").task_role("worker", "ls", gpu="many")  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["", "  \n", [], [""], ["   "]])
def test_an_empty_command_is_refused(command: str | list[str]) -> None:
    with pytest.raises(UsageError, match="is empty"):
        Job.from_command(command)
