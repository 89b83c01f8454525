"""OpenPAI's own client, as published, drives our server: every call, and its `pai` command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.peers import install_openpai_js
from support.servers import ServerProcess

pytestmark = [pytest.mark.real("node"), pytest.mark.slow]

HERE = Path(__file__).parent

EVERY_CALL = {
    "api.getClusterInfo",
    *(f"authn.{name}" for name in ("basicLogin", "basicLogout", "oidcLogin", "oidcLogout")),
    *(f"token.{name}" for name in ("createApplicationToken", "deleteToken", "getTokens")),
    *(f"user.{name}" for name in ("createUser", "getAllUser", "updateUser", "updateUserSelf", "getUser")),
    *(f"user.{name}" for name in ("deleteUser", "updateUserGroup", "deleteUserGroup", "updateUserGrouplist")),
    *(f"group.{name}" for name in ("getAllGroup", "createGroup", "updateGroup", "getGroup", "deleteGroup")),
    "group.getGroupMembers",
    "virtualCluster.listVirtualClusters",
    "virtualCluster.getVirtualCluster",
    "virtualCluster.getVirtualClusterSkuTypes",
    "storage.getStorages",
    "storage.getStorage",
    *(f"job.{name}" for name in ("createJob", "createRunningJob", "listJobs", "getJob", "getJobConfig")),
    *(f"job.{name}" for name in ("updateJobExecutionType", "addTag", "deleteTag", "getTask", "getTaskLogs")),
    "job.listEvents",
    "jobHistory.getJobAttemptsHealthz",
    "jobHistory.getJobAttempts",
    "jobHistory.getJobAttempt",
    "kubernetes.getK8sNodes",
    "kubernetes.getK8sPods",
}

JOB = """\
protocolVersion: 2
name: from-pai
type: job
prerequisites:
  - {type: dockerimage, name: image, uri: "python:3"}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["sleep 300"]
"""


@pytest.fixture(scope="module")
def modules(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache is not None
    return install_openpai_js(pytestconfig.cache.mkdir("openpai-js-sdk"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "server", "--launcher", "process").start()
    yield process
    process.stop()


def environment(modules: Path, server: ServerProcess) -> dict[str, str]:
    return {
        **os.environ,
        "NODE_PATH": str(modules),
        "NODE_NO_WARNINGS": "1",
        "PEER_URI": server.uri.removeprefix("http://"),
        "PEER_USER": server.user,
        "PEER_TOKEN": server.token,
    }


def test_every_call_of_the_published_client(modules: Path, server: ServerProcess) -> None:
    done = subprocess.run(
        ["node", str(HERE / "every_call.js")],
        env=environment(modules, server),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr + server.log()[-3000:]
    assert set(json.loads(done.stdout.splitlines()[-1])) >= EVERY_CALL


def test_its_pai_command_from_adding_the_cluster_to_reading_a_job(
    modules: Path, server: ServerProcess, tmp_path: Path, empty_home: Path
) -> None:
    def pai(*arguments: str) -> str:
        done = subprocess.run(
            [str(modules / ".bin" / "pai"), *arguments],
            env=environment(modules, server),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0 and not done.stderr, done.stderr + done.stdout
        return done.stdout

    def job() -> dict[str, Any]:
        return json.loads(pai("getj", "here", "from-pai"))  # type: ignore[no-any-return]

    (tmp_path / "job.yaml").write_text(JOB)
    (empty_home / ".openpai").mkdir(exist_ok=True)
    (empty_home / ".openpai" / "clusters.json").write_text("[]")  # it complains where there is none yet
    pai("addc", server.uri, server.user, server.token, "--alias", "here")
    assert "here" in pai("listc")
    assert '"status": 202' in pai("subj", "here", str(tmp_path / "job.yaml"))
    assert "from-pai" in pai("listj", "here")
    assert job()["jobStatus"]["username"] == server.user
    for _ in range(100):
        if job()["jobStatus"]["state"] == "RUNNING":
            break
    task = job()["taskRoles"]["worker"]["taskStatuses"][0]
    command = pai("ssh", "here", "from-pai")
    assert f"-p {task['containerPorts']['ssh']} {task['containerIp']}" in command
    assert '"storages"' in pai("lists", "here")
    pai("delc", "here")
    assert "here" not in pai("listc")
