"""A server for a lab, over TLS: its documents are run as they stand, and people share it as promised."""

from __future__ import annotations

import json
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.core import Cluster
from openpaisdk.errors import AccessError, LoginError, NotFoundError, QuotaError
from support.opai import Opai
from support.servers import SharedServer, end_processes_of

pytestmark = pytest.mark.real("openssl")
DOCUMENT = Path(__file__).parents[2] / "docs" / "server.md"
OPTIONS = ("--launcher", "process", "--fake-gpus", "2", "--virtual-cluster", "research=0.5")


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SharedServer]:
    process = SharedServer(tmp_path / "server", *OPTIONS, *getattr(request, "param", ())).start()
    yield process
    process.stop()


def admin_of(server: SharedServer) -> Cluster:
    return server.cluster_of("admin", server.admin_password)


@pytest.fixture
def people(server: SharedServer) -> dict[str, Cluster]:
    admin = admin_of(server)
    found = {"admin": admin}
    for name in ("alice", "bob"):
        admin.create_user(name, f"{name}-secret", virtual_clusters=["default", "research"])
        found[name] = server.cluster_of(name, f"{name}-secret")
    return found


def spec(name: str, command: str = "sleep 300", *, gpu: int = 1, **extras: Any) -> dict[str, Any]:
    defaults = {key: extras.pop(key) for key in ("virtualCluster",) if key in extras}
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3"}],
        "secrets": {"password": "hunter2-hunter2"},
        "taskRoles": {
            "worker": {
                "instances": 1,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": gpu},
                "commands": [command],
            }
        },
        "defaults": defaults,
        "extras": {"openpaisdk": {"image": "default"}, **extras},
    }


def with_priority(priority: str, **more: Any) -> dict[str, Any]:
    return {"hivedScheduler": {"jobPriorityClass": priority}, **more}


def running(cluster: Cluster, name: str) -> None:
    cluster.wait(name, until="running", timeout=30)


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def test_what_the_document_says_to_administrators(
    server: SharedServer, tmp_path: Path, empty_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opai = Opai(empty_home, tmp_path)
    add = ("cluster", "add", "lab", "--pai-uri", server.uri, "--password-stdin")
    refused = opai(*add, "--user", "admin", stdin=server.admin_password, code=6)
    assert "self-signed" in refused.stderr
    trusted = (*add, "--ca-file", str(server.certificate))
    opai(*trusted, "--user", "admin", stdin=server.admin_password)
    (server.data_dir / "storages.json").write_text(
        re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    )
    accounts, password, storages = python_blocks()
    scope: dict[str, Any] = {}
    for block in (accounts, storages, password):
        exec(compile(block, str(DOCUMENT), "exec"), scope)
    assert "alice ['default', 'research']" in capsys.readouterr().out
    opai(*trusted, "--user", "admin", stdin=server.admin_password, code=5)
    opai(*trusted, "--user", "admin", stdin="a better one")
    bob = server.cluster_of("bob", "his first password")
    assert bob.get_user()["virtualCluster"] == ["default", "research"]
    assert [storage["name"] for storage in bob.storages()] == ["datasets", "scratch"]
    running_or_done = bob.submit(spec("first", "echo hello", gpu=0, virtualCluster="research"))
    assert bob.wait(running_or_done["name"], timeout=30)["jobStatus"]["state"] == "SUCCEEDED"


@pytest.mark.parametrize("server", [("--quota", "alice=gpu:1,jobs:3", "--quota", "*=jobs:1")], indirect=True)
def test_quotas_hold(people: dict[str, Cluster]) -> None:
    alice, bob = people["alice"], people["bob"]
    alice.submit(spec("one"))
    running(alice, "one")
    alice.submit(spec("two"))
    assert alice.why("two")["text"] == (
        "two waits: 1 GPU wanted, the quota of alice is 1, 1 in use. First in the queue of `default`."
    )
    with pytest.raises(QuotaError, match="the job asks for 2 GPUs, the quota of alice is 1"):
        alice.submit(spec("three", gpu=2))
    bob.submit(spec("one"))
    running(bob, "one")
    bob.submit(spec("two", gpu=0))
    assert "the quota of bob allows 1 job at once, 1 run" in bob.why("two")["text"]
    alice.stop("one")
    running(alice, "two")


def test_an_oppo_job_gives_way_and_is_run_again_for_free(people: dict[str, Cluster]) -> None:
    alice, bob = people["alice"], people["bob"]
    for name in ("idle-1", "idle-2"):
        bob.submit(spec(name, "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; sleep 300", **with_priority("oppo")))
        running(bob, name)
    alice.submit(spec("paper", virtualCluster="research", **with_priority("prod")))
    running(alice, "paper")
    text = bob.why("idle-2")["text"]
    assert text.startswith("idle-2 gave way to alice~paper and waits: 1 GPU wanted, none free; ")
    assert text.endswith("First in the queue of `default`, priority oppo.")
    # The share of `research` is one GPU: beyond it nobody is evicted, not even for prod.
    alice.submit(spec("more", virtualCluster="research", **with_priority("prod")))
    assert "the share of `research` is used, so that it waits for idle capacity" in alice.why("more")["text"]
    alice.stop("paper")
    alice.stop("more")
    running(bob, "idle-2")
    status = bob.job("idle-2")["jobStatus"]
    assert (status["retries"], status["retryDetails"]["user"]) == (1, 0)
    reasons = {event["reason"]: event["message"] for event in bob.events("idle-2")}
    assert reasons["Preempted"] == "1 task evicted for alice~paper"
    assert bob.job("idle-1")["jobStatus"]["retries"] == 0


@pytest.mark.parametrize("server", [(), ("--own-jobs-only",)], ids=["open", "own-jobs-only"], indirect=True)
def test_jobs_of_others_are_left_alone(people: dict[str, Cluster], server: SharedServer) -> None:
    alice, bob = people["alice"], people["bob"]
    alice.submit(spec("secret", "echo private; sleep 300", gpu=2))
    running(alice, "secret")
    hidden = "--own-jobs-only" in server.options
    refused = NotFoundError if hidden else AccessError
    job = "alice~secret"
    for attempt in (
        lambda: bob.stop(job),
        lambda: bob.add_tag(job, "mine"),
        lambda: bob.delete_job(job),
        lambda: bob.exec_start(job, ["id"]),
        lambda: bob.signal(job),
    ):
        with pytest.raises(refused):
            attempt()
    bob.submit(spec("waiting", gpu=1))
    why = bob.why("waiting")["text"]
    if hidden:
        assert {row["username"] for row in bob.jobs(all_users=True)} == {"bob"}
        assert "a job of another user holds 2" in why and "alice" not in why
        with pytest.raises(NotFoundError):
            list(bob.follow(job))
    else:
        assert "alice~secret holds 2" in why
    assert alice.job("secret")["jobStatus"]["state"] == "RUNNING"
    run = alice.exec_start("secret", ["sh", "-c", "echo inside $PAI_USER_NAME"])
    output = b"".join(data for kind, data in alice.exec_output("secret", run) if kind == "out")
    assert output == b"inside alice\n"


def test_secrets_of_a_job_are_nobody_elses(
    people: dict[str, Cluster], server: SharedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = people["alice"]
    alice.submit(spec("quiet", "echo <% $secrets.password %> | wc -c; env; ps -ef; sleep 300", gpu=0))
    running(alice, "quiet")
    folder = next((server.data_dir / "tasks").glob("*/0/worker-0-0"))
    token = re.search(r"OPAI_TOKEN=(\S+)", (folder / "env.sh").read_text())
    assert token is not None
    for path in (folder, *folder.parents):
        if path == server.folder:
            break
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    for name in ("env.sh", "script.sh", "stdout", "intent.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    inside = Cluster(pai_uri=server.uri, user="alice", token=token[1], verify=str(server.certificate))
    assert [row["name"] for row in inside.jobs()] == ["quiet"]
    with pytest.raises(AccessError):
        inside.create_application_token()
    lines = (folder / "stdout").read_text().splitlines()
    shown = [line for line in lines if "ps -ef" not in line and not line.startswith("OPAI_TOKEN=")]
    assert not [
        line for line in shown if token[1] in line or "hunter2" in line or server.admin_password in line
    ]
    assert "hunter2" not in json.dumps([alice.job("quiet"), alice.job_config("quiet"), alice.events("quiet")])
    alice.stop("quiet")
    alice.wait("quiet", timeout=60)
    with pytest.raises(LoginError):
        inside.jobs()


def test_tasks_do_not_see_the_variables_of_whoever_started_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the administrator's own")
    monkeypatch.setenv("https_proxy", "http://proxy.example.org")
    server = SharedServer(tmp_path / "server", *OPTIONS).start()
    try:
        admin = admin_of(server)
        admin.submit(spec("env", "env", gpu=0))
        admin.wait("env", timeout=30)
        text = next((server.data_dir / "tasks").glob("*/0/worker-0-0/stdout")).read_text()
    finally:
        server.stop()
    assert "https_proxy=http://proxy.example.org" in text and "PATH=" in text
    assert "AWS_SECRET" not in text


def test_after_a_restart_of_the_machine_tasks_are_run_again_for_free(
    people: dict[str, Cluster], server: SharedServer
) -> None:
    alice = people["alice"]
    alice.submit(spec("long", "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; sleep 300"))
    running(alice, "long")
    server.kill()
    folder = next((server.data_dir / "tasks").glob("*/0/worker-0-0"))
    end_processes_of(folder)
    # The wrapper must not have had time to write down an exit, as when the power goes.
    (folder / "exit").write_bytes(b" " * 31 + b"\n")
    claim = json.loads((folder / "started.json").read_text())
    (folder / "started.json").write_text(json.dumps({**claim, "boot": "of an earlier start"}))
    server.start()
    alice = server.cluster_of("alice", "alice-secret")
    running(alice, "long")
    status = alice.job("long")["jobStatus"]
    assert (status["state"], status["retries"]) == ("RUNNING", 1)
    assert status["retryDetails"] == {"user": 0, "platform": 1, "resource": 0}


def test_a_virtual_cluster_that_is_gone_takes_no_jobs(
    people: dict[str, Cluster], server: SharedServer
) -> None:
    server.process.terminate()
    server.process.wait(20)
    server.options = tuple(
        word for word in server.options if "research" not in word and "virtual" not in word
    )
    server.start()
    alice = server.cluster_of("alice", "alice-secret")
    assert alice.get_user()["virtualCluster"] == ["default"]
    with pytest.raises(AccessError) as caught:
        alice.submit(spec("lost", virtualCluster="research"))
    assert caught.value.hint == "yours: default"


def test_it_stops_at_once_whoever_is_connected(people: dict[str, Cluster], server: SharedServer) -> None:
    alice = people["alice"]
    alice.submit(spec("talks", "while true; do date; sleep 0.1; done"))
    records = alice.follow("talks")
    assert next(records) is not None
    begun = time.monotonic()
    server.process.terminate()
    assert server.process.wait(20) == 0
    assert time.monotonic() - begun < 2.5
    records.close()
