"""Version 1 jobs: their rules, and their meaning after conversion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openpaisdk.protocol import (
    check,
    check_v1,
    effective_completion,
    entry_script,
    from_v1,
    is_v1,
    load,
    render_auth,
)

SMALL = {
    "jobName": "train",
    "image": "ubuntu",
    "taskRoles": [{"name": "worker", "command": "python train.py"}],
}

FULL: dict[str, Any] = {
    "jobName": "tf.dist~1",
    "image": "reg.example/tf:1.4",
    "authFile": "hdfs://host/auth",
    "dataDir": "$PAI_DEFAULT_FS_URI/data",
    "outputDir": "hdfs://host/out",
    "codeDir": "hdfs://host/code",
    "virtualCluster": "gpu",
    "gpuType": "K80",
    "retryCount": -2,
    "jobEnvs": {"LR": 0.5, "NAME": "two words", "QUOTE": "it's", "isDebug": True, "odd-key": "x"},
    "extras": {"note": 1},
    "taskRoles": [
        {
            "name": "ps_server",
            "taskNumber": 2,
            "cpuNumber": 4,
            "memoryMB": 8192,
            "gpuNumber": 1,
            "shmMB": 128,
            "portList": [{"label": "tb", "beginAt": 5000, "portNumber": 2}, {"label": "web.ui"}],
            "command": "python ps.py $PAI_TASK_ROLE_ps_server_HOST_LIST $PAI_TASK_ROLE_Worker_HOST_LIST",
            "minSucceededTaskCount": None,
        },
        {"name": "Worker", "taskNumber": 3, "command": "work", "minFailedTaskCount": 2,
         "minSucceededTaskCount": 3},
        {"name": "work.er", "command": "also", "minFailedTaskCount": None},
        {"name": "2nd~", "command": "last"},
    ],
}  # fmt: skip


def test_which_version() -> None:
    assert is_v1(SMALL)
    assert not is_v1({"protocolVersion": 2, "name": "x"})
    assert not is_v1({"protocolVersion": 2, "jobName": "x"})
    assert not is_v1(None)


def test_a_small_job_with_all_defaults() -> None:
    spec = from_v1(SMALL)
    assert check(spec) == []
    assert spec["name"] == "train"
    assert spec["jobRetryCount"] == 0
    assert spec["prerequisites"] == [{"name": "default", "type": "dockerimage", "uri": "ubuntu"}]
    assert spec["defaults"] == {"virtualCluster": "default", "deployment": "default"}
    assert "secrets" not in spec
    assert "parameters" not in spec
    assert spec["taskRoles"] == {
        "worker": {
            "instances": 1,
            "completion": {"minFailedInstances": 1, "minSucceededInstances": -1},
            "dockerImage": "default",
            "extraContainerOptions": {"shmMB": 64},
            "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
            "commands": ["python train.py"],
        }
    }
    assert entry_script(spec, "worker").splitlines()[1:] == ["python train.py"]


def test_a_full_job_is_valid_after_conversion() -> None:
    spec = from_v1(FULL, auth=("reg.example", "me", "hunter2"))
    assert check_v1(FULL) == []
    assert check(spec) == []
    assert spec["name"] == "tf-dist-1"
    assert spec["jobRetryCount"] == 0
    assert spec["defaults"]["virtualCluster"] == "gpu"
    assert spec["extras"] == {"note": 1, "gpuType": "K80"}
    assert spec["parameters"] == FULL["jobEnvs"]
    assert [(item["type"], item["uri"]) for item in spec["prerequisites"]] == [
        ("dockerimage", "reg.example/tf:1.4"),
        ("data", ["$PAI_DEFAULT_FS_URI/data"]),
        ("output", "hdfs://host/out"),
        ("script", "hdfs://host/code"),
    ]
    assert all(item["name"] == "default" for item in spec["prerequisites"])


def test_roles_get_names_that_v2_and_the_cluster_accept() -> None:
    spec = from_v1(FULL)
    assert list(spec["taskRoles"]) == ["psserver", "worker", "worker2", "nd"]
    command = spec["taskRoles"]["psserver"]["commands"][0]
    assert "PAI_TASK_ROLE_psserver_HOST_LIST" in command
    assert "PAI_TASK_ROLE_worker_HOST_LIST" in command
    assert spec["taskRoles"]["psserver"]["resourcePerInstance"] == {
        "cpu": 4,
        "memoryMB": 8192,
        "gpu": 1,
        "ports": {"tb": 2, "web_ui": 1},
    }
    assert spec["taskRoles"]["psserver"]["extraContainerOptions"] == {"shmMB": 128}


def test_completion_keeps_its_v1_meaning() -> None:
    roles = from_v1(FULL)["taskRoles"]
    assert [effective_completion(role) for role in roles.values()] == [(1, -1), (2, 3), (-1, -1), (1, -1)]


@pytest.mark.parametrize(("before", "after"), [(-2, 0), (-1, 0), (0, 0), (3, 3), (None, 0)])
def test_retry_counts(before: int | None, after: int) -> None:
    assert from_v1({**SMALL, "retryCount": before})["jobRetryCount"] == after


def test_registry_credentials_go_into_secrets() -> None:
    spec = from_v1(FULL, auth=("reg.example", "me", "hunter2"))
    assert spec["secrets"] == {"registry": {"username": "me", "password": "hunter2"}}
    assert "hunter2" not in json.dumps(spec["prerequisites"])
    assert render_auth(spec, "worker") == ("reg.example", "me", "hunter2")
    shown = from_v1(FULL)
    assert shown["secrets"] == {"registry": {"username": "******", "password": "******"}}
    assert check(shown, strict=False) == []
    paths = [problem.path for problem in check(shown)]
    assert paths == ["secrets.registry.username", "secrets.registry.password"], "masks are not sent"


def test_folders_and_variables_are_exported() -> None:
    spec = from_v1(FULL)
    script = entry_script(spec, "worker").splitlines()
    assert script[1:] == [
        'export PAI_DATA_DIR="$PAI_DEFAULT_FS_URI/data"',
        'export PAI_OUTPUT_DIR="hdfs://host/out"',
        'export PAI_CODE_DIR="hdfs://host/code"',
        "export LR='0.5'",
        "export NAME='two words'",
        "export QUOTE='it'\"'\"'s'",
        "export isDebug='true'",
        "work",
    ]
    spec["parameters"]["LR"] = 0.1
    assert "export LR='0.1'" in entry_script(spec, "worker")


def test_the_original_is_left_alone() -> None:
    before = json.dumps(FULL)
    spec = from_v1(FULL)
    spec["parameters"]["LR"] = 7
    spec["extras"]["note"] = 7
    assert json.dumps(FULL) == before


def broken(**changes: Any) -> dict[str, Any]:
    return {**SMALL, **changes}


def role(**changes: Any) -> dict[str, Any]:
    return broken(taskRoles=[{"name": "worker", "command": "x", **changes}])


@pytest.mark.parametrize(
    ("job", "path", "keyword"),
    [
        ({"jobName": "x", "image": "i"}, "", "required"),
        ({"jobName": "x", "taskRoles": SMALL["taskRoles"]}, "", "required"),
        (broken(jobName="a b"), "jobName", "pattern"),
        (broken(image=""), "image", "minLength"),
        (broken(image=1), "image", "type"),
        (broken(dataDir=1), "dataDir", "type"),
        (broken(retryCount=-3), "retryCount", "minimum"),
        (broken(jobEnvs=[]), "jobEnvs", "type"),
        (broken(taskRoles=[]), "taskRoles", "minItems"),
        (broken(taskRoles={}), "taskRoles", "type"),
        (broken(virtualcluster="x"), "virtualcluster", "additionalProperties"),
        (broken(taskRoles=[{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]), "taskRoles.1.name",
         "duplicate"),
        (broken(taskRoles=[{"name": "a"}]), "taskRoles.0", "required"),
        (role(name="a-b"), "taskRoles.0.name", "pattern"),
        (role(command=""), "taskRoles.0.command", "minLength"),
        (role(taskNumber="2"), "taskRoles.0.taskNumber", "type"),
        (role(taskNumbers=2), "taskRoles.0.taskNumbers", "additionalProperties"),
        (role(taskNumber=2, minFailedTaskCount=3), "taskRoles.0.minFailedTaskCount", "maximum"),
        (role(minSucceededTaskCount=2), "taskRoles.0.minSucceededTaskCount", "maximum"),
        (role(minFailedTaskCount=0), "taskRoles.0.minFailedTaskCount", "minimum"),
        (role(memoryMB=10, shmMB=11), "taskRoles.0.shmMB", "maximum"),
        (role(portList=[{"label": "a-b"}]), "taskRoles.0.portList.0.label", "pattern"),
        (role(portList=[{"beginAt": 0}]), "taskRoles.0.portList.0", "required"),
    ],
)  # fmt: skip
def test_rules(job: dict[str, Any], path: str, keyword: str) -> None:
    document = load(json.dumps(job, indent=1), "old.json")
    (problem,) = check_v1(document)
    assert (problem.path, problem.keyword) == (path, keyword)
    assert problem.line is not None
    last = path.split(".")[-1]
    if last and not last.isdigit():
        assert f'"{last}"' in document.text.splitlines()[problem.line - 1]


def test_several_problems_at_once_and_no_mapping_at_all() -> None:
    problems = check_v1({"jobName": "a b", "taskRoles": ["x", {"name": 1}]})
    assert [p.path for p in problems] == ["", "jobName", "taskRoles.0", "taskRoles.1", "taskRoles.1.name"]
    assert [p.keyword for p in check_v1([])] == ["type"]


def test_unknown_keys_that_look_like_nothing_known_pass() -> None:
    assert check_v1(broken(zzzzzz=1)) == []
