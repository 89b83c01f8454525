"""`opai job resubmit`: what changes, what stays, where the job is looked for and where it goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.config import ClusterConfig
from openpaisdk.core import Cluster
from openpaisdk.engine import Engine
from openpaisdk.errors import InvalidJobError, NotFoundError, UsageError
from openpaisdk.job import Job
from openpaisdk.notebook.submission import notebook_job
from openpaisdk.notebook.tokens import recall
from support.fake_pai import ALL_EXTENSIONS, FakePAI

NOTEBOOK = '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'


class Clusters:
    """Several clusters in memory; `home` is the default one."""

    def __init__(self) -> None:
        self.known = {name: FakePAI(extensions=ALL_EXTENSIONS) for name in ("home", "other")}
        self.engine = Engine(open_cluster=self.open)

    def open(self, alias: str | None) -> Cluster:
        name = alias or "home"
        config = ClusterConfig(name, f"http://{name}.example.org", user="ann", token="t")
        return Cluster(config, transport=self.known[name], sleep=lambda seconds: None)

    def resubmit(self, *words: str) -> dict[str, Any]:
        """The spec of the new job."""
        record = self.engine.process(["job", "resubmit", *words, "-j", "twin"])
        spec: dict[str, Any] = self.known[record["cluster"]].jobs["ann~twin"]["spec"]
        return spec


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


def interactive(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "nb.ipynb"
    path.write_text(NOTEBOOK)
    spec = notebook_job(path, mode="interactive", name="inter", packages=["numpy"]).job.spec
    return {**spec, "secrets": "******"}


def test_the_same_job_with_other_resources(clusters: Clusters) -> None:
    old = Job.from_command("python train.py", name="small", env={"A": "b"}).spec
    clusters.known["home"].add("small", spec=json.loads(json.dumps(old)))
    new = clusters.resubmit(
        *("small", "--gpu", "4", "--cpu", "8", "--mem", "16GB", "-n", "2", "--port", "tb=1", "--vc", "gpus"),
        *("--image", "torch:2", "--set", "jobRetryCount=3"),
    )
    role = new["taskRoles"]["worker"]
    resources = {"cpu": 8, "memoryMB": 16384, "gpu": 4, "ports": {"tb": 1}}
    assert role["resourcePerInstance"] == resources
    assert (role["instances"], new["jobRetryCount"], new["defaults"]["virtualCluster"]) == (2, 3, "gpus")
    assert role["commands"] == old["taskRoles"]["worker"]["commands"]
    image = next(entry for entry in new["prerequisites"] if entry["name"] == role["dockerImage"])
    assert image["uri"] == "torch:2"
    assert "image" not in new["extras"].get("openpaisdk", {}), "an image that was asked for is no default"


def test_one_role_of_several(clusters: Clusters) -> None:
    job = Job("two").task_role("ps", "a").task_role("worker", "b")
    clusters.known["home"].add("two", spec=job.spec)
    new = clusters.resubmit("two", "-t", "worker", "--cpu", "3")
    assert [role["resourcePerInstance"]["cpu"] for role in new["taskRoles"].values()] == [1, 3]
    with pytest.raises(NotFoundError, match="no task role `nobody`"):
        clusters.resubmit("two", "-t", "nobody")


def test_where_the_job_is_looked_for(clusters: Clusters) -> None:
    clusters.known["home"].add("mine")
    clusters.known["other"].add("theirs")
    clusters.resubmit("mine", "-a", "other")
    del clusters.known["other"].jobs["ann~twin"]
    clusters.resubmit("theirs", "-a", "other")
    clusters.resubmit("theirs", "--from", "other")
    with pytest.raises(NotFoundError, match="no job nothing on home or other") as caught:
        clusters.resubmit("nothing", "-a", "other")
    assert "--from" in (caught.value.hint or "")
    with pytest.raises(NotFoundError, match="nothing"):
        clusters.resubmit("nothing")
    with pytest.raises(UsageError, match="which job"):
        clusters.resubmit()


def test_secrets_have_to_be_given_again(clusters: Clusters) -> None:
    job = Job.from_command("echo '<% $secrets.key %>'", name="hush")
    for masked in ("******", {"key": "******"}):
        job.spec["secrets"] = masked
        clusters.known["home"].add("hush", spec=job.spec)
        with pytest.raises(
            UsageError, match="secrets of hush cannot be read back from the cluster: key"
        ) as caught:
            clusters.resubmit("hush")
        assert "--secret key=VALUE" in (caught.value.hint or "")
    assert clusters.resubmit("hush", "--secret", "key=a=b")["secrets"] == {"key": "a=b"}


def test_the_mask_of_a_registry_password_is_not_sent(clusters: Clusters) -> None:
    job = Job.from_command("true", name="private")
    auth = {"username": "me", "password": "******", "registryuri": "reg.example.org"}
    job.spec["prerequisites"][0]["auth"] = auth
    clusters.known["home"].add("private", spec=job.spec)
    for words in (["resubmit", "private"], ["clone", "private"]):
        with pytest.raises(InvalidJobError) as caught:
            clusters.engine.process(["job", *words, "-j", "twin"])
        assert "--set prerequisites.0.auth.password=VALUE" in str(caught.value.problems[0])
        assert "ann~twin" not in clusters.known["home"].jobs
    with pytest.raises(InvalidJobError) as caught:
        Job.from_cluster("private", clusters.open(None)).clone("twin").submit()
    assert "is only the mask" in str(caught.value.problems[0])
    clusters.resubmit("private", "--image", "public:1")
    del clusters.known["home"].jobs["ann~twin"]
    new = clusters.resubmit("private", "--set", "prerequisites.0.auth.password=hunter2")
    assert new["prerequisites"][0]["auth"] == {**auth, "password": "hunter2"}


def test_a_jupyter_gets_a_new_token_that_is_kept(clusters: Clusters, tmp_path: Path) -> None:
    clusters.known["home"].add("inter", spec=interactive(tmp_path))
    new = clusters.resubmit("inter", "--gpu", "1")
    assert new["secrets"] == {"jupyter": recall("home", "ann", "twin")}
    assert len(new["secrets"]["jupyter"]) > 20


def test_a_notebook_that_was_worked_in_is_executed_and_back(clusters: Clusters, tmp_path: Path) -> None:
    clusters.known["home"].add("inter", spec=interactive(tmp_path))
    batch = clusters.resubmit("inter", "--mode", "batch")
    role = batch["taskRoles"]["notebook"]
    assert role["commands"][-1] == "python3 -m openpai.runtime.notebook_run nb.ipynb"
    assert any("numpy" in line for line in role["commands"])
    assert "secrets" not in batch and "ports" not in role["resourcePerInstance"]
    assert batch["extras"]["openpaisdk"]["notebook"]["mode"] == "batch"
    assert "kind" not in batch["extras"]["openpaisdk"]
    clusters.known["home"].jobs["ann~batch"] = clusters.known["home"].jobs.pop("ann~twin")
    back = clusters.resubmit("batch", "--mode", "interactive")
    assert back["taskRoles"]["notebook"]["resourcePerInstance"]["ports"] == {"jupyter": 1}
    assert back["extras"]["openpaisdk"]["kind"] == "interactive" and back["secrets"]["jupyter"]
    clusters.known["home"].add("plain")
    with pytest.raises(UsageError, match="was not made of a notebook"):
        clusters.resubmit("plain", "--mode", "batch")
    back["extras"]["openpaisdk"]["wrapped"] = True
    with pytest.raises(UsageError, match="travelled inside the text"):
        clusters.resubmit("twin", "--mode", "batch")


def test_inside_the_job_its_files_go_as_they_are_now(
    clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Job.from_command("python train.py", name="inside").spec
    spec["extras"]["openpaisdk"] = {"code": {"manifest": "0" * 64}}
    clusters.known["home"].add("inside", spec=spec)
    (tmp_path / "train.py").write_text("print('better')")
    assert clusters.resubmit("inside")["extras"]["openpaisdk"]["code"]["manifest"] == "0" * 64
    del clusters.known["home"].jobs["ann~twin"]
    monkeypatch.setenv("PAI_JOB_NAME", "ann~inside")
    monkeypatch.setenv("PAI_WORK_DIR", str(tmp_path))
    assert clusters.resubmit()["extras"]["openpaisdk"]["code"]["manifest"] != "0" * 64


def test_a_dry_run_shows_it_and_sends_nothing(clusters: Clusters, tmp_path: Path) -> None:
    clusters.known["home"].add("inter", spec=interactive(tmp_path))
    shown = clusters.engine.process(["job", "resubmit", "inter", "--dry-run", "-j", "twin"])
    assert shown["name"] == "twin" and shown["secrets"] != recall("home", "ann", "twin")
    assert "ann~twin" not in clusters.known["home"].jobs


def test_code_that_another_cluster_cannot_take(clusters: Clusters) -> None:
    spec = Job.from_command("python train.py", name="coded").spec
    spec["extras"]["openpaisdk"] = {"code": {"manifest": "0" * 64}}
    clusters.known["home"].add("coded", spec=spec)
    clusters.known["other"].extensions = ""
    with pytest.raises(UsageError, match="code of coded cannot be carried to other") as caught:
        clusters.resubmit("coded", "-a", "other")
    assert "opai job sub -a other" in (caught.value.hint or "")
