"""Why a job waits or failed, in words: the server's where it has them, ours for genuine clusters."""

from __future__ import annotations

from typing import Any

import pytest

from openpaisdk.cli.main import main
from openpaisdk.commands.explaining import explain
from openpaisdk.engine import Engine
from support.fake_pai import START, FakePAI

NOW = START / 1000 + 7200


def amounts(gpu: int, cpu: int, memory: int) -> dict[str, int]:
    return {"gpu": gpu, "cpu": cpu, "memory": memory}


def waiting(gpu: int = 2, used: int = 3, total: int = 4, **more: Any) -> dict[str, Any]:
    role = {"instances": 2, "resourcePerInstance": {"gpu": gpu // 2, "cpu": 1, "memoryMB": 1024}}
    status = {"state": "WAITING", "virtualCluster": "default", "submissionTime": START, **more}
    vc = {"resourcesUsed": amounts(used, 2, 2048), "resourcesTotal": amounts(total, 16, 65536)}
    return explain(
        {"name": "bert", "jobStatus": status},
        config={"taskRoles": {"worker": role}},
        events=more.get("events", ()),
        virtual_clusters={"default": vc},
        now=NOW,
    )


def test_waits_for_what_others_hold() -> None:
    found = waiting()
    assert found["text"] == "bert waits: 2 GPUs wanted, 1 free in `default`. Submitted 2 h ago."
    assert found["hint"] == "opai cluster resources shows what is used"


def test_waits_for_ever() -> None:
    found = waiting(gpu=8)
    assert "8 GPUs wanted, 1 free" in found["text"]
    assert (
        found["hint"]
        == "it will wait for ever: the whole virtual cluster has 4 GPUs; stop it and ask for less"
    )


def test_waits_although_enough_is_free() -> None:
    assert "Enough is free" in waiting(used=0)["text"]


def test_waits_for_a_retry_and_says_what_the_cluster_said() -> None:
    warning = {"type": "Warning", "reason": "FailedScheduling", "message": "0/3 nodes are available\n"}
    found = waiting(retries=1, retryDelayTime=30, events=[{"type": "Normal"}, warning])
    assert "It was tried 2 times before, next in 30 s." in found["text"]
    assert "The cluster says FailedScheduling: 0/3 nodes are available" in found["text"]


def test_waits_on_a_server_that_tells_little() -> None:
    found = explain({"name": "x", "jobStatus": {"state": "WAITING", "createdTime": None}})
    assert found == {"job": "x", "state": "WAITING", "text": "x waits in `default`.", "hint": None}


def test_failed_with_exit_code_words() -> None:
    status = {
        "state": "FAILED",
        "appExitCode": 226,
        "appExitTriggerTaskRoleName": "worker",
        "appExitTriggerTaskIndex": 1,
        "retries": 2,
        "appExitMessages": {"runtime": {"originUserExitCode": 3, "errorLogs": {"user": "Traceback\nboom\n"}}},
    }
    found = explain({"name": "x", "jobStatus": status})
    assert found["text"].startswith("x failed in task worker/1 with exit code 3.")
    assert "boom" in found["text"]
    assert "It was tried 3 times." in found["text"]
    assert found["hint"].endswith("opai job logs x shows what it printed")
    assert len(found["hint"].splitlines()) > 1, "a remedy comes with the exit code"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            {"state": "RUNNING", "launchedTime": START, "attemptId": 2},
            "x is running, for 2 h. This is attempt 2.",
        ),
        ({"state": "RUNNING", "executionType": "STOP"}, "x is being stopped."),
        (
            {"state": "SUCCEEDED", "launchedTime": START, "completedTime": START + 4200},
            "x succeeded in 4.2 s.",
        ),
        ({"state": "STOPPED"}, "x was stopped by its owner or an administrator."),
        ({"state": "UNKNOWN"}, "x is unknown."),
        ({"state": "FAILED", "appExitCode": None}, "x failed with exit code None."),
    ],
)
def test_every_other_state(status: dict[str, Any], text: str) -> None:
    assert explain({"name": "x", "jobStatus": status}, now=NOW)["text"] == text


def test_the_server_has_the_first_word(
    engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]
) -> None:
    pai.add("one", state="WAITING")
    assert main(["job", "why", "one"], engine) == 0
    assert capsys.readouterr().out == "one waits: 2 GPUs wanted, 1 free.\n  wait, or ask for less\n"


def test_genuine_clusters_are_explained_here(genuine_engine: Engine, genuine: FakePAI) -> None:
    from openpaisdk.job import Job

    genuine.add("one", state="WAITING", spec=Job.from_command("ls", name="one", gpu=2).spec)
    genuine.virtual_clusters["default"]["resourcesUsed"] = amounts(3, 0, 0)
    (found,) = genuine_engine.process(["job", "why", "one"])
    assert found["text"].startswith("one waits: 2 GPUs wanted, 1 free in `default`.")
