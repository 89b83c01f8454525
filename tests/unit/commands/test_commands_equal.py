"""`Engine().process` and `-o json` give equal data, for every command there is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from openpaisdk.cli.main import main
from openpaisdk.commands import TABLE
from support.fake_pai import ALL_EXTENSIONS, FakePAI, engine_for

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
    commands: ["true"]
"""

# Commands whose outcome depends on nothing but the double; each runs on a fresh one, twice.
CASES = [
    ["job", "list"],
    ["job", "list", "--name"],
    [
        "job",
        "list",
        "--all-users",
        "--state",
        "running,waiting",
        "--vc",
        "default",
        "--keyword",
        "r",
        "--limit",
        "1",
    ],
    ["job", "list", "one"],
    ["job", "list", "one", "config"],
    ["job", "list", "one", "ssh"],
    ["job", "sub", "-j", "fixed", "--gpu", "1", "--", "python", "train.py"],
    ["job", "sub", "-j", "fixed", "--dry-run", "echo", "hi"],
    ["job", "sub", "-j", "fixed", "--follow", "--env", "A=b=c", "echo", "hi"],
    ["job", "fast", "-j", "fixed", "--wait", "echo hi"],
    ["job", "submit", "--config", "job.yaml"],
    ["job", "submit", "--config", "job.yaml", "--dry-run", "--set", "taskRoles.worker.instances=2"],
    ["job", "create", "-j", "step", "-i", "ubuntu", "-p", "numpy"],
    ["job", "task", "-j", "begun", "-t", "ps", "-n", "2", "--port", "tb=2", "python", "ps.py", "--fast"],
    ["job", "submit", "-j", "begun"],
    ["job", "validate", "job.yaml", "wrong.yaml"],
    ["job", "status", "one", "two"],
    ["job", "logs", "one"],
    ["job", "logs", "-f", "one"],
    ["job", "wait", "one", "two"],
    ["job", "why", "one"],
    ["job", "stop", "one", "two"],
    ["job", "clone", "one", "-j", "twin"],
    ["job", "resubmit", "one", "-j", "bigger", "--gpu", "4", "--image", "ubuntu:22.04"],
    ["job", "notebook", "nb.ipynb", "-j", "fixed", "--param", "lr=0.01", "--wait"],
    ["job", "delete", "over"],
    ["job", "exec", "one", "--", "nvidia-smi", "-L"],
    ["job", "ssh", "one", "worker/0"],
    ["job", "signal", "one", "checkpoint", "--task", "worker/0"],
    ["cluster", "list"],
    ["cluster", "list", "--name"],
    ["cluster", "list", "-a", "lab"],
    ["cluster", "add", "new", "--pai-uri", "http://new.example.org", "--no-check"],
    ["cluster", "remove", "lab"],
    ["cluster", "select", "lab"],
    ["cluster", "resources"],
    ["default", "add", "image=ubuntu", "gpu=2"],
    ["default", "list"],
    ["default", "remove", "vc"],
    ["output", "list", "-j", "one"],
    ["output", "download", "-j", "one", "--to", "got"],
    ["output", "peek", "-j", "one", "--stdin"],
    ["storage", "list", "FILES"],
    ["storage", "status", "FILES/job.yaml"],
    ["storage", "upload", "job.yaml", "FILES/copy.yaml"],
    ["storage", "download", "FILES/job.yaml", "back.yaml"],
    ["storage", "mkdir", "FILES/new"],
    ["storage", "delete", "FILES/job.yaml"],
    ["completion", "bash"],
    ["completion", "zsh"],
    ["completion", "fish"],
]
# Tested with a real server in tests/e2e and with a pretended one in test_commands_server.
ELSEWHERE = {("server", verb) for verb in TABLE["server"]}
# It lasts as long as its job: test_notebook_connection and the tests in a browser have it.
ELSEWHERE |= {("job", "connect")}


def prepare(folder: Path) -> FakePAI:
    pai = FakePAI(extensions=ALL_EXTENSIONS)
    pai.add("one")
    pai.add("two", state="WAITING")
    pai.add("over", state="SUCCEEDED", exit=0)
    pai.add("theirs", user="bob")
    pai.logs["one"] = [("worker/0", "stdout", "epoch 1\nepo"), ("worker/0", "stdout", "ch 2\n")]
    (folder / "job.yaml").write_text(JOB)
    (folder / "nb.ipynb").write_text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}')
    for path in ("files/job.yaml", "files/jobs/one/output/model.pt"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(JOB)
        os.utime(folder / path, (1_700_000_000, 1_700_000_000))
    os.utime(folder / "files/jobs", (1_700_000_000, 1_700_000_000))
    (folder / "wrong.yaml").write_text(JOB.replace("instances: 1", "instances: two"))
    return pai


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakePAI:
    from openpaisdk.config import ClusterConfig, save_cluster
    from openpaisdk.engine import Engine

    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENPAI_HOME", str(folder / "home"))
    monkeypatch.setenv("OPAI_WORKSPACE", f"file://{folder}/files")
    save_cluster(ClusterConfig("lab", "http://pai.example.org", user="ann", passwd="secret"))
    Engine().process(["default", "add", "vc=default"])
    Engine().process(["job", "create", "-j", "begun", "-i", "ubuntu"])
    Engine().process(["job", "task", "-t", "worker", "echo", "hi"])
    return prepare(folder)


def without_folder(data: object, folder: Path) -> object:
    return json.loads(json.dumps(data).replace(str(folder), "FOLDER"))


@pytest.mark.parametrize("argv", CASES, ids=" ".join)
@pytest.mark.usefixtures("known_token")
def test_engine_and_json_are_equal(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def here(folder: str) -> list[str]:
        return [word.replace("FILES", f"file://{tmp_path / folder}/files") for word in argv]

    pai = fresh(tmp_path / "first", monkeypatch)
    data = engine_for(pai).process(here("first"))
    assert capsys.readouterr().out == "", "the engine prints nothing"

    pai = fresh(tmp_path / "second", monkeypatch)
    words = here("second")
    main([words[0], "-o", "json", *words[1:]], engine_for(pai))
    shown = json.loads(capsys.readouterr().out)
    assert without_folder(shown, tmp_path / "second") == without_folder(data, tmp_path / "first")

    pai = fresh(tmp_path / "third", monkeypatch)
    main(["-o", "yaml", *here("third")], engine_for(pai))
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    assert without_folder(as_yaml, tmp_path / "third") == without_folder(data, tmp_path / "first")


def test_every_command_is_compared() -> None:
    compared = {(case[0], case[1]) for case in CASES} | ELSEWHERE
    assert compared == {(group, verb) for group, verbs in TABLE.items() for verb in verbs}
