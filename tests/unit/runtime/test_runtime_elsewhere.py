"""Jobs on a cluster that knows nothing of us: sent to a pretended OpenPAI, run in a real shell."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from openpaisdk import Cluster, Job
from openpaisdk.config import ClusterConfig
from openpaisdk.protocol import check, dump, entry_script
from openpaisdk.workspace import list_outputs, runtime_text
from support.fake_pai import FakePAI
from support.servers import ServerProcess


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """WebHDFS with a token, which a real NameNode would offer."""
    running = ServerProcess(tmp_path_factory.mktemp("files"), "--launcher", "process").start()
    yield running
    running.stop()


class Elsewhere:
    """A genuine OpenPAI, as far as jobs can tell: renders their text and runs it with its variables."""

    def __init__(self, folder: Path, *, workspace: str | None = None) -> None:
        self.pai = FakePAI()
        config = ClusterConfig("lab", "http://pai.example.org", user="ann", token="t", workspace=workspace)
        self.cluster = Cluster(config, transport=self.pai)
        self.tmp = folder / "tmp"
        self.image = folder / "image"
        self.image.mkdir(parents=True)

    def environment(self, job: str, role: str, index: int, attempt: int) -> dict[str, str]:
        self.tmp.mkdir(exist_ok=True)
        return {
            "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin",
            "HOME": str(self.image),
            "TMPDIR": str(self.tmp),
            "PAI_JOB_NAME": f"ann~{job}",
            "PAI_CONTAINER_ID": "0000",
            "PAI_CURRENT_TASK_ROLE_NAME": role,
            "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
            "PAI_TASK_INDEX": str(index),
            "FC_FRAMEWORK_ATTEMPT_ID": str(attempt),
        }

    def sent(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.pai.jobs[f"ann~{job}"]["spec"]
        return found

    def script(self, job: str, role: str = "worker") -> str:
        sent = self.sent(job)
        assert check(sent) == []
        assert len(dump(sent).encode()) <= 100 * 1024
        return entry_script(sent, role, secrets=sent.get("secrets") or {})

    def start(self, job: Job, *, role: str = "worker", index: int = 0, attempt: int = 0, **env: str) -> Any:
        environment = {**self.environment(job.name, role, index, attempt), **env}
        script = self.tmp / "user.sh"
        script.write_text(self.script(job.name, role))
        return subprocess.Popen(
            ["/bin/bash", "-euo", "pipefail", str(script)],
            cwd=self.image,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, job: Job, **choice: Any) -> tuple[int, str, str]:
        process = self.start(job, **choice)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err


@pytest.fixture
def bare(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path)


@pytest.fixture
def stored(files: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """A cluster with a workspace on WebHDFS; every test has a folder of its own there."""
    monkeypatch.setenv("HADOOP_DELEGATION_TOKEN", files.token)
    host = files.uri.partition("://")[2]
    return Elsewhere(tmp_path, workspace=f"webhdfs://{host}/user/{files.user}/{tmp_path.name}")


def code(folder: Path, **programs: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)
    return folder


WHERE = """
import os
from openpai.runtime import Runtime
place = Runtime.from_env().place
print(place.kind, place.job, place.role, place.index, sorted(os.listdir(".")))
"""


def test_code_and_runtime_travel_in_the_text(
    bare: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code(tmp_path / "code", where=WHERE))
    job = Job.from_command("python3 where.py", name="small").submit(bare.cluster)
    assert bare.run(job) == (0, "batch small worker 0 ['where.py']\n", "")
    sent = bare.sent("small")
    assert sent["taskRoles"]["worker"]["commands"][2] == "python3 where.py"  # people can still read it
    assert "code" not in sent["extras"]["openpaisdk"]


def test_the_runtime_is_small_and_the_same_every_time() -> None:
    assert len(runtime_text()) < 20_000
    assert len(runtime_text(notebook=True)) < 24_000
    assert runtime_text() == runtime_text()


def test_several_roles_share_what_is_long(
    bare: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code(tmp_path / "code", where=WHERE))
    job = Job("roles").parameter("word", "hi").task_role("ps", "echo <% $parameters.word %>")
    job.task_role("worker", "python3 where.py", instances=2).source().submit(bare.cluster)
    assert bare.run(job, role="ps") == (0, "hi\n", "")
    assert bare.run(job, index=1)[1] == "batch roles worker 1 ['where.py']\n"
    assert len(json.dumps(bare.sent("roles"))) < 30_000


def test_a_plain_job_is_sent_as_it_is(bare: Elsewhere) -> None:
    job = Job.from_command("nvidia-smi", name="plain").submit(bare.cluster)
    assert bare.sent("plain")["taskRoles"] == job.spec["taskRoles"]
    assert bare.sent("plain").get("parameters") is None


def test_an_image_without_python_still_runs_plain_commands(
    bare: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code(tmp_path / "code", where=WHERE))
    job = Job.from_command("ls; echo $1 > $PAI_SDK_JOB_OUTPUT_DIR/x; echo done", source=".")
    job.submit(bare.cluster)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "mktemp", "cat", "mkdir", "rm", "base64", "gzip", "tar", "ls"):
        (tools / name).symlink_to(str(shutil.which(name)))
    code_, out, err = bare.run(job, PATH=str(tools))
    assert (code_, out) == (1, "where.py\n")  # $1 is not set, and that ends a job on OpenPAI
    assert err.count("no python3") == 1


def test_the_runtime_can_be_left_out(
    bare: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code(tmp_path / "code", where="print(1)"))
    job = (
        Job.from_command("python3 where.py; echo ${PYTHONPATH:-none}").use_runtime(False).submit(bare.cluster)
    )
    assert bare.run(job) == (0, "1\nnone\n", "")
    assert "runtime" not in bare.sent(job.name)["parameters"]["openpaisdk"]


def test_the_exit_code_is_the_commands_own(bare: Elsewhere) -> None:
    job = Job.from_command("echo $PAI_SDK_TASK_DIR >/dev/null; exit 7").submit(bare.cluster)
    assert bare.run(job)[0] == 7
    job = Job.from_command("cd $PAI_SDK_TASK_DIR; kill -KILL $$").submit(bare.cluster)
    assert bare.run(job)[0] == 137


def test_deployments_stay_around_the_commands(bare: Elsewhere) -> None:
    job = Job.from_command("echo main; ls $PAI_SDK_TASK_DIR/*.sh | wc -l").parameter("word", "pre")
    job.deployment("d", "worker", pre="echo <% $parameters.word %>", post="echo post")
    twin = job.clone().use_callbacks()
    assert bare.run(job.submit(bare.cluster)) == (0, "pre\nmain\n1\npost\n", "")
    assert bare.run(twin.submit(bare.cluster)) == (0, "main\n3\n", "")


def test_code_travels_through_the_workspace(
    stored: Elsewhere, files: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = code(tmp_path / "code", where=WHERE, big="#" + "x" * 300_000)
    (folder / "link.py").symlink_to("where.py")
    (folder / "run.sh").write_text("#!/bin/sh\npython3 link.py")
    (folder / "run.sh").chmod(0o755)
    monkeypatch.chdir(folder)
    job = Job.from_command("./run.sh", name="large").submit(stored.cluster)
    listed = "['big.py', 'link.py', 'run.sh', 'where.py']"
    assert stored.run(job) == (0, f"batch large worker 0 {listed}\n", "")
    sent = json.dumps(stored.sent("large")["taskRoles"])
    assert files.token not in sent and "<% $secrets.openpaisdk_workspace %>" in sent
    blobs = files.data_dir / "files" / "user" / files.user / tmp_path.name / ".blobs"
    before = {path.name: path.stat().st_mtime_ns for path in blobs.iterdir()}
    Job.from_command("./run.sh").submit(stored.cluster)
    assert {path.name: path.stat().st_mtime_ns for path in blobs.iterdir()} == before


def test_damaged_code_is_not_run(
    stored: Elsewhere, files: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code(tmp_path / "code", where=WHERE))
    job = Job.from_command("python3 where.py").submit(stored.cluster)
    blobs = files.data_dir / "files" / "user" / files.user / tmp_path.name / ".blobs"
    for blob in blobs.iterdir():
        if blob.read_bytes() == WHERE.encode():
            blob.write_bytes(b"print('evil')")
    exit_code, out, err = stored.run(job)
    assert (exit_code, out) == (75, "")
    assert "where.py arrived damaged" in err


@pytest.mark.parametrize("end", ["true", "exit 3", "kill -KILL $$"])
def test_outputs_reach_the_workspace_however_it_ends(stored: Elsewhere, end: str) -> None:
    command = f"mkdir -p models; echo w > models/a.pt; echo r > $PAI_SDK_JOB_OUTPUT_DIR/result; {end}"
    job = Job.from_command(command).save_outputs("models/*.pt", "missing").submit(stored.cluster)
    exit_code, _, err = stored.run(job)
    assert exit_code == {"true": 0, "exit 3": 3}.get(end, 137)
    assert "opai: --save 'missing' matched no file\n" in err and "2 of 2 outputs saved" in err
    assert [name for name, _ in list_outputs(stored.cluster, job.name)] == ["models/a.pt", "result"]


def test_several_tasks_have_folders_of_their_own(stored: Elsewhere) -> None:
    job = Job.from_command("echo $PAI_TASK_INDEX > me", instances=2).save_outputs("me").submit(stored.cluster)
    for index in range(2):
        assert stored.run(job, index=index)[0] == 0
    names = [name for name, _ in list_outputs(stored.cluster, job.name)]
    assert names == ["worker-0/me", "worker-1/me"]


TRAIN = """
import os, time
from openpai.runtime import Runtime
app = Runtime.from_env()
step = 0

@app.on("preempt")
def save(seconds):
    time.sleep(0.5)
    publish("preempted at {}".format(step))

def publish(text):
    with open("state", "w") as file:
        file.write(text)
    app.checkpoints.publish("state")

@app.on("main")
def main():
    global step
    last = app.checkpoints.last()
    print("from", open(last).read() if last else None, flush=True)
    if last:
        return
    publish("step 1")
    step = 2
    print("ready", flush=True)
    time.sleep(60)

app.run()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_attempt_finds_the_checkpoint(
    stored: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.chdir(code(tmp_path / "code", train=TRAIN))
    job = Job.from_command("python3 train.py", name="resumes").submit(stored.cluster)
    process = stored.start(job)
    assert [process.stdout.readline() for _ in range(2)] == ["from None\n", "ready\n"]
    if number == signal.SIGKILL:
        # Nothing can be saved any more; what was published is there already.
        deadline = time.monotonic() + 20
        while "000001" not in str(list_outputs(stored.cluster, "resumes")) and time.monotonic() < deadline:
            time.sleep(0.1)
    below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    if number == signal.SIGKILL:  # a container takes its processes along
        for child in below:
            child.kill()
    process.communicate(timeout=30)
    assert process.returncode == (143 if number == signal.SIGTERM else -9)
    shutil.rmtree(stored.tmp)  # another node
    exit_code, out, err = stored.run(job, attempt=1)
    expected = "preempted at 2" if number == signal.SIGTERM else "step 1"
    assert (exit_code, out) == (0, f"from {expected}\n"), err


@pytest.mark.real("hdfs")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_on_a_real_hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.hdfs import hdfs_cluster

    monkeypatch.chdir(code(tmp_path / "code", train=TRAIN, big="#" + "x" * 300_000))
    hdfs = tmp_path / "hdfs"
    hdfs.mkdir()
    with hdfs_cluster(hdfs) as address:
        elsewhere = Elsewhere(tmp_path, workspace=f"{address}/user/ann")
        command = "python3 train.py; echo r > $PAI_SDK_JOB_OUTPUT_DIR/result"
        job = Job.from_command(command, name="resumes").save_outputs("*.py").submit(elsewhere.cluster)
        process = elsewhere.start(job)
        assert [process.stdout.readline() for _ in range(2)] == ["from None\n", "ready\n"]
        process.terminate()
        process.communicate(timeout=30)
        shutil.rmtree(elsewhere.tmp)
        assert elsewhere.run(job, attempt=1)[:2] == (0, "from preempted at 2\n")
        assert elsewhere.run(job, attempt=2)[:2] == (0, "from preempted at 2\n")  # outputs are replaced
        names = [name for name, _ in list_outputs(elsewhere.cluster, "resumes")]
        assert set(names) >= {"big.py", "train.py", "result", ".checkpoints/worker-0/000002/state"}


def test_a_workspace_that_is_gone_is_told(stored: Elsewhere, files: ServerProcess) -> None:
    job = Job.from_command("echo r > $PAI_SDK_JOB_OUTPUT_DIR/result").submit(stored.cluster)
    sent = stored.sent(job.name)
    sent["secrets"]["openpaisdk_workspace"] = "wrong"
    exit_code, _, err = stored.run(job)
    assert exit_code == 75
    assert "cannot be had" in err and "delegation" not in err and "wrong" not in err
