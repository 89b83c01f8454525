"""Every documented command, as a person types it, against the embedded cluster that starts by itself."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator

import pytest
import yaml

from openpaisdk.commands import TABLE
from support.opai import Opai
from support.servers import end_processes_of

SPEC = {
    "protocolVersion": 2,
    "name": "from-file",
    "type": "job",
    "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3.11"}],
    "secrets": {"key": "very-secret-value"},
    "taskRoles": {
        "worker": {
            "instances": 1,
            "dockerImage": "image",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 0},
            "commands": ["echo from a file"],
        }
    },
}


@pytest.fixture(scope="module")
def opai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opai]:
    home = tmp_path_factory.mktemp("person")
    work = home / "work"
    work.mkdir()
    yield Opai(home, work)
    end_processes_of(home)


def test_the_first_job_needs_no_configuration(opai: Opai) -> None:
    done = opai("job", "sub", "--follow", "-j", "first", "--", "sh", "-c", "echo out; echo err >&2")
    assert done.stdout == "out\n"
    assert "err\n" in done.stderr
    assert "succeeded" in done.stderr
    state = opai.home / ".openpai" / "local" / "server.json"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_the_exit_code_is_the_outcome(opai: Opai) -> None:
    assert "exit" in opai("job", "sub", "--follow", "-j", "broken", "--", "exit 3", code=10).stderr
    assert opai("job", "wait", "broken", code=10).returncode == 10
    why = opai("job", "why", "broken")
    assert "3" in why.stdout


def test_list_and_detail(opai: Opai) -> None:
    assert opai.json("job", "list", "--name") == ["broken", "first"]
    assert opai("job", "list", "-o", "name").stdout.split() == ["broken", "first"]
    assert [row["name"] for row in opai.json("job", "list", "--state", "FAILED")] == ["broken"]
    assert opai.json("job", "list", "first")["jobStatus"]["state"] == "SUCCEEDED"
    assert "echo out" in json.dumps(opai.json("job", "list", "first", "config"))
    assert isinstance(opai.json("job", "list", "first", "ssh"), (dict, list))
    assert yaml.safe_load(opai("job", "list", "first", "-o", "yaml").stdout)["name"] == "first"


def test_a_server_that_uses_no_containers(opai: Opai) -> None:
    """The jobs below name an image; they must not depend on whether this machine could pull it."""
    opai("server", "stop")
    opai("server", "start", "--launcher", "process")
    assert opai.json("server", "status")["launcher"] == "process"


def test_a_job_step_by_step(opai: Opai) -> None:
    opai("job", "create", "-j", "steps", "-i", "python:3.11")
    opai("job", "task", "-t", "ps", "-n", "2", "--cpu", "0", "--mem", "64", "echo", "ps")
    opai("job", "task", "-t", "worker", "--mem", "64", "--port", "data=2", "echo", "worker")
    # Else the end of both `ps` would end the job, perhaps before the worker has printed anything.
    opai("job", "submit", "--set", "taskRoles.ps.completion.minSucceededInstances=-1")
    kept = json.loads((opai.cwd / ".openpai" / "jobs" / "steps" / "config.json").read_text())
    assert set(kept["taskRoles"]) == {"ps", "worker"}
    opai("job", "wait", "steps")
    log = opai("job", "logs", "steps")
    assert "worker/0" in log.stdout


def test_submit_files(opai: Opai) -> None:
    (opai.cwd / "job.yaml").write_text(yaml.safe_dump(SPEC))
    dry = opai(
        "job",
        "submit",
        "--config",
        "job.yaml",
        "--set",
        "name=renamed",
        "--set",
        "jobRetryCount=2",
        "--dry-run",
    )
    assert "renamed" in dry.stdout
    assert "very-secret-value" not in dry.stdout + dry.stderr
    opai("job", "submit", "--config", "job.yaml")
    opai("job", "submit", "--config", "-", "--set", "name=from-stdin", stdin=json.dumps(SPEC))
    old = {
        "jobName": "old.style",
        "image": "python:3",
        "taskRoles": [{"name": "main", "command": "echo old"}],
    }
    (opai.cwd / "old.json").write_text(json.dumps(old))
    assert opai.json("job", "submit", "--config", "old.json")
    opai("job", "wait", "from-file", "from-stdin")
    assert opai("job", "logs", "from-file", "--stdout").stdout == "from a file\n"
    taken = opai("job", "submit", "--config", "job.yaml", code=4)
    assert "from-file" in taken.stderr


def test_validate_tells_every_problem_with_its_line(opai: Opai) -> None:
    broken = json.loads(json.dumps(SPEC))
    broken["taskRoles"]["worker"]["instances"] = "two"
    broken["taskRoles"]["worker"]["resourcesPerInstance"] = broken["taskRoles"]["worker"].pop(
        "resourcePerInstance"
    )
    (opai.cwd / "broken.yaml").write_text(yaml.safe_dump(broken))
    opai("job", "validate", "job.yaml")
    done = opai("job", "validate", "broken.yaml", code=2)
    said = done.stdout + done.stderr
    assert "broken.yaml:" in said and "did you mean" in said and "'two'" in said


def test_watch_and_stop(opai: Opai) -> None:
    opai("job", "sub", "-j", "long", "--", "echo begun; sleep 300")
    for record in opai.json("job", "status", "long", "first"):
        assert record["name"] in ("long", "first")
    assert (
        opai("job", "exec", "long", "--", "sh", "-c", "echo $PAI_JOB_NAME").stdout.strip().endswith("~long")
    )
    assert opai("job", "ssh", "long", stdin="echo inside\nexit\n", code=None).returncode == 0
    deaf = opai("job", "signal", "long", "checkpoint", code=4)
    assert "listens for 'checkpoint'" in deaf.stderr
    opai("job", "stop", "long")
    assert opai("job", "wait", "long", code=11).returncode == 11
    assert opai("job", "logs", "long", "--tail", "1").stdout == "begun\n"


def test_clone_and_delete(opai: Opai) -> None:
    cloned = opai.json("job", "clone", "first")
    name = cloned["name"] if isinstance(cloned, dict) else cloned[0]["name"]
    opai("job", "wait", name)
    opai("job", "delete", name)
    assert name not in opai.json("job", "list", "--name")
    opai("job", "fast", "-j", "quick", "echo", "fast")
    opai("job", "wait", "quick")


def test_clusters_and_defaults(opai: Opai) -> None:
    local = json.loads((opai.home / ".openpai" / "local" / "server.json").read_text())
    opai(
        "cluster",
        "add",
        "-a",
        "box",
        "--pai-uri",
        local["uri"],
        "--user",
        local["user"],
        "--token-stdin",
        stdin=local["token"],
    )
    assert opai.json("cluster", "list", "--name") == ["box"]
    shown = opai("cluster", "list", "-o", "json").stdout
    assert local["token"] not in shown
    clusters = opai.home / ".openpai" / "clusters.json"
    assert stat.S_IMODE(clusters.stat().st_mode) == 0o600
    opai("cluster", "select", "box")
    assert opai.json("cluster", "resources")
    wrong = opai("job", "list", "-a", "bax", code=3)
    assert "box" in wrong.stderr
    opai("default", "add", "image=python:3.12", "gpu=0")
    assert "python:3.12" in opai("default", "list").stdout
    assert "image" in opai("default", "add", "imgae=x", code=2).stderr
    opai("default", "remove", "image")
    opai("cluster", "remove", "box")


def test_completion_and_version(opai: Opai) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "opai" in opai("completion", shell).stdout
    assert opai("--version").stdout.strip()
    assert opai("-h").stdout and opai("job", "-h").stdout
    for group, verbs in TABLE.items():
        for verb in verbs:
            assert "usage" in opai(group, verb, "-h").stdout.lower(), f"{group} {verb} -h"


def test_the_server(opai: Opai) -> None:
    status = opai.json("server", "status")
    assert status["pid"] and status["uri"] and status["launcher"]
    opai("server", "logs")
    opai("server", "stop")
    opai("server", "start")
    assert "first" in opai.json("job", "list", "--name")
    opai("server", "reset", "--yes")
    assert opai.json("job", "list", "--name") == []


def test_every_command_was_run(opai: Opai) -> None:
    documented = {(group, verb) for group, verbs in TABLE.items() for verb in verbs}
    # `-h` alone does not count: these were called above with real work to do.
    assert documented - opai.called == set()
