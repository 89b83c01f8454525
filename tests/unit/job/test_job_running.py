"""A submitted job: a Future with logs, on our server and on a genuine one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from openpaisdk import Job
from openpaisdk.config import ClusterConfig
from openpaisdk.core import Cluster
from openpaisdk.errors import JobFailedError, JobStoppedError, UsageError
from support.fake_pai import ALL_EXTENSIONS, FakePAI


@pytest.fixture(params=["", ALL_EXTENSIONS], ids=["genuine", "ours"])
def pai(request: pytest.FixtureRequest) -> FakePAI:
    return FakePAI(extensions=request.param)


@pytest.fixture
def cluster(pai: FakePAI) -> Cluster:
    config = ClusterConfig("lab", "http://pai.example.org", user="ann", token="a-token")
    return Cluster(config, transport=pai, sleep=lambda seconds: None)


def test_one_line_in_a_loop(cluster: Cluster, pai: FakePAI) -> None:
    jobs = [Job.from_command(f"python train.py --lr {lr}", gpu=1).submit(cluster) for lr in range(50)]
    assert len(pai.jobs) == 50
    assert {job.result()["state"] for job in jobs} == {"SUCCEEDED"}


def test_a_future(cluster: Cluster, pai: FakePAI) -> None:
    job = Job.from_command("ls", name="x").submit(cluster)
    assert (job.user, job.status(), job.done(), job.running()) == ("ann", "WAITING", False, False)
    found = job.result(timeout=60)
    assert (found.state, found.exit_code, found.name, found["seconds"]) == ("SUCCEEDED", 0, "x", 4.2)
    assert job.done()
    assert job.exception() is None
    assert job.cancel() is False
    assert not job.cancelled()


def test_failure_and_stop(cluster: Cluster, pai: FakePAI) -> None:
    pai.outcomes["x"] = 255
    job = Job.from_command("ls", name="x").submit(cluster)
    with pytest.raises(JobFailedError, match="x failed with exit code 255") as caught:
        job.result()
    assert caught.value.hint == "opai job why x"
    assert isinstance(job.exception(), JobFailedError)
    stopped = Job.from_command("ls", name="y").submit(cluster)
    assert stopped.cancel() is True
    with pytest.raises(JobStoppedError):
        stopped.result()
    assert stopped.cancelled()


def test_the_programs_own_exit_code_counts() -> None:
    from openpaisdk.job.outcome import outcome

    status = {
        "state": "FAILED",
        "appExitCode": 255,
        "appExitMessages": {"runtime": {"originUserExitCode": 3}},
    }
    assert outcome({"name": "x", "jobStatus": status}).exit_code == 3


def test_timeout_is_a_timeout(cluster: Cluster, pai: FakePAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pai, "end", lambda job: None)
    job = Job.from_command("ls", name="x").submit(cluster)
    with pytest.raises(TimeoutError, match="still WAITING"):
        job.result(timeout=0)


def test_from_cluster_and_clone(cluster: Cluster, pai: FakePAI) -> None:
    pai.add("theirs", user="bob")
    job = Job.from_cluster("bob~theirs", cluster)
    assert (job.user, job.name, job.status()) == ("bob", "theirs", "RUNNING")
    assert "username=bob&jobName=theirs" in job.link
    twin = job.clone()
    assert twin.name.startswith("theirs-")
    assert twin.submit(cluster).user == "ann"
    assert job.clone("other").name == "other"


def test_logs() -> None:
    pai = FakePAI(extensions=ALL_EXTENSIONS)
    cluster = Cluster(
        ClusterConfig("lab", "http://pai.example.org", user="ann", token="a-token"), transport=pai
    )
    pai.logs["x"] = [("worker/0", "stdout", "a\nb\n")]
    job = Job.from_command("ls", name="x").submit(cluster)
    assert [event.text for event in job.logs() if event.kind == "log"] == ["a", "b"]


def test_before_submit_there_is_nothing_to_ask() -> None:
    for question in ("status", "wait", "stop", "result"):
        with pytest.raises(UsageError, match="has not been submitted"):
            getattr(Job("x"), question)()


def test_from_many_threads(cluster: Cluster, pai: FakePAI) -> None:
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda n: Job.from_command("ls").submit(cluster), range(64)))
    assert len({job.name for job in jobs}) == len(pai.jobs) == 64


def test_default_cluster_is_opened_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str | None] = []

    def remember(alias: str | None) -> Cluster:
        opened.append(alias)
        return cluster

    monkeypatch.setattr("openpaisdk.core.Cluster.open", remember)
    monkeypatch.setattr("openpaisdk.job._open_clusters", {})
    for _ in range(3):
        Job.from_command("ls").submit()
        Job.from_command("ls").submit("lab")
    assert opened == [None, "lab"]


def test_code_goes_along_where_the_command_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pai = FakePAI(extensions=ALL_EXTENSIONS)
    cluster = Cluster(
        ClusterConfig("lab", "http://pai.example.org", user="ann", token="a-token"), transport=pai
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")

    def code_of(job: Job) -> object:
        return job.submit(cluster).spec["extras"].get("openpaisdk", {}).get("code")

    first = code_of(Job.from_command("python train.py --lr 0.1"))
    assert first == code_of(Job.from_command("python train.py --lr 0.2"))
    assert first is not None
    assert code_of(Job.from_command("echo hi")) is None
    assert code_of(Job.from_command("python train.py", source=[])) is None
    assert code_of(Job.from_command("echo hi", source="train.py")) == first
    assert code_of(Job.from_command("echo hi").source()) == first


def test_code_on_a_cluster_without_a_place_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(
        ClusterConfig("lab", "http://pai.example.org", user="ann", token="t"), transport=FakePAI()
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    assert Job.from_command("python train.py").submit(cluster).status() == "WAITING"
    (tmp_path / "data").write_bytes(os.urandom(200_000))
    with pytest.raises(UsageError, match="has no other place for code"):
        Job.from_command("python train.py").source("data").submit(cluster)


def test_a_twin_goes_where_its_model_is_with_secrets_and_code_of_its_own(
    cluster: Cluster, pai: FakePAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openpaisdk import job as jobs

    pai.add("one")["spec"]["secrets"] = "******"
    monkeypatch.setattr(jobs, "_open_clusters", {None: "the default one, which is not meant"})
    twin = Job.from_cluster("one", cluster).clone("two").secret("key", "value").submit()
    assert twin.cluster is cluster
    assert twin.spec["secrets"] == {"key": "value"}
    sweep = Job.from_command("python train.py", source=["train.py"]).clone()
    assert (sweep._sources, sweep._needs_source) == (("train.py",), True)
