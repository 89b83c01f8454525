"""What a task finds and what becomes of it on a real server: runtime, signals, files, callbacks, packages."""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
import sys
import textwrap
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from openpaisdk import Job
from openpaisdk.errors import ConflictError, NotFoundError
from openpaisdk.job.outcome import Outcome
from openpaisdk.rest.following import LogLine
from support.servers import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("server"), "--launcher", "process").start()
    yield running
    running.stop()


def program(text: str) -> str:
    return f"exec {shlex.quote(sys.executable)} -c {shlex.quote(textwrap.dedent(text))}"


def begun(job: Job, line: str = "ready") -> Job:
    """Returns when the job has printed the line."""
    for record in job.logs():
        if isinstance(record, LogLine) and record.text.strip() == line:
            return job
    raise AssertionError(f"{job.name} ended without {line!r}: {job.detail()['jobStatus']}")


def printed(job: Job) -> list[str]:
    return [record.text.rstrip("\n") for record in job.logs() if isinstance(record, LogLine)]


def outputs(server: ServerProcess, job: Job) -> dict[str, str]:
    folder = server.data_dir / "files" / "user" / server.user / "jobs" / job.name / "output"
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def run(server: ServerProcess, job: Job) -> Outcome:
    return job.submit(server.cluster()).wait(60)


def test_the_runtime_is_there_without_being_installed(server: ServerProcess) -> None:
    text = """
        import openpai.runtime
        place = openpai.runtime.Runtime.from_env().place
        print(openpai.runtime.__file__)
        print(place.kind, place.role, place.index)
        """
    job = Job.from_command(program(text))
    assert run(server, job).state == "SUCCEEDED", printed(job)
    where, place = printed(job)
    assert where.startswith(str(server.data_dir / "runtime"))
    assert place == "batch worker 0"


def test_it_can_be_left_out(server: ServerProcess) -> None:
    job = Job.from_command('echo "${PYTHONPATH:-}"').use_runtime(False)
    run(server, job)
    assert str(server.data_dir) not in printed(job)[0]


def test_variables_of_the_sdk(server: ServerProcess) -> None:
    text = """
        import os
        for name in ("WORKSPACE", "OUTPUT_DIR"):
            assert os.path.isdir(os.environ["PAI_SDK_JOB_" + name]), name
        assert os.path.exists(os.path.join(os.environ["PAI_SDK_TASK_DIR"], "script.sh"))
        print(os.environ["PAI_SDK_GRACE_SECONDS"], os.environ["PAI_SDK_JOB_KIND"])
        """
    job = Job.from_command(program(text)).extra("openpaisdk", {"kind": "interactive"})
    assert run(server, job).state == "SUCCEEDED"
    assert printed(job) == ["30 interactive"]


def test_the_client_inside_a_job_is_that_jobs_own(server: ServerProcess) -> None:
    text = """
        from openpaisdk import Client, in_job_container
        client = Client.from_env()
        print(in_job_container(), client.job("asks")["name"], client.user)
        """
    job = Job.from_command(program(text), name="asks")
    assert run(server, job).state == "SUCCEEDED", printed(job)
    assert printed(job) == [f"True asks {server.user}"]


PREEMPTED = """
    import os, time
    from openpai.runtime import Runtime
    app = Runtime.from_env()

    @app.on("preempt")
    def save(seconds):
        time.sleep(1)
        os.makedirs("models", exist_ok=True)
        with open("models/last.pt", "w") as file:
            file.write("weights")
        app.checkpoints.publish("models/last.pt")
        print("saved with", seconds, "seconds to go", flush=True)

    @app.on("main")
    def main():
        print("ready", flush=True)
        time.sleep(60)

    app.run()
    """


@pytest.mark.parametrize("shape", ["{}", "(cd . && {})", "true && {}; echo not reached", "{} & wait"])
def test_a_stop_waits_for_the_preempt_callback(server: ServerProcess, shape: str) -> None:
    command = shape.format(program(PREEMPTED).removeprefix("exec "))
    job = begun(Job.from_command(command).save_outputs("models/*.pt").submit(server.cluster()))
    began = time.monotonic()
    job.stop()
    assert job.wait(30).state == "STOPPED"
    assert 1 <= time.monotonic() - began < 10
    assert printed(job) == ["ready", "saved with 30.0 seconds to go"]
    checkpoint = ".checkpoints/worker-0/000001/last.pt"
    assert outputs(server, job) == {"models/last.pt": "weights", checkpoint: "weights"}


def test_a_shell_without_children_to_wait_for_ends_at_once(server: ServerProcess) -> None:
    job = begun(Job.from_command("echo ready; sleep 60; echo not reached").submit(server.cluster()))
    began = time.monotonic()
    job.stop()
    assert job.wait(30).state == "STOPPED"
    assert time.monotonic() - began < 5
    assert "not reached" not in printed(job)


@pytest.mark.parametrize("end", ["exit 3", "kill -KILL $$", "true"])
def test_files_are_saved_however_a_task_ends(server: ServerProcess, end: str) -> None:
    # One that is killed is tried again, which a test need not see.
    once = "[ $FC_FRAMEWORK_ATTEMPT_ID = 0 ] || { sleep 0.2; exit 1; }"
    job = Job.from_command(f"{once}; mkdir -p out; echo {shlex.quote(end)} > out/result; {end}").save_outputs(
        "out/*"
    )
    run(server, job)
    assert outputs(server, job) == {"out/result": end + "\n"}
    events = server.cluster().events(job.name)
    saved = [event["message"] for event in events if event["reason"] == "OutputsSaved"]
    assert saved == [f"1 file, {len(end) + 1} bytes, kept as outputs"]


def test_files_are_saved_by_the_next_server_when_one_dies(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "server", "--launcher", "process").start()
    try:
        go = tmp_path / "go"
        command = f"echo ready; while [ ! -e {go} ]; do sleep 0.05; done; echo kept > result"
        job = begun(Job.from_command(command).save_outputs("result").submit(server.cluster()))
        server.kill()
        go.touch()
        time.sleep(0.3)
        server.start()
        job.cluster = server.cluster()
        assert job.wait(30).state == "SUCCEEDED"
        assert outputs(server, job) == {"result": "kept\n"}
    finally:
        server.stop()


def test_several_tasks_have_folders_of_their_own(server: ServerProcess) -> None:
    job = Job.from_command("echo $PAI_TASK_INDEX > me", instances=2, cpu=0).save_outputs("me", "lost.pt")
    run(server, job)
    assert outputs(server, job) == {"worker-0/me": "0\n", "worker-1/me": "1\n"}
    events = server.cluster().events(job.name)
    assert [event["type"] for event in events if event["reason"] == "OutputsNotSaved"] == ["Warning"] * 2


def test_all_tasks_share_the_output_folder(server: ServerProcess) -> None:
    job = Job.from_command("echo x > $PAI_SDK_JOB_OUTPUT_DIR/part-$PAI_TASK_INDEX", instances=2, cpu=0)
    run(server, job)
    assert outputs(server, job) == {"part-0": "x\n", "part-1": "x\n"}


@pytest.mark.parametrize(
    ("command", "state"),
    [
        ("false; true", "FAILED"),
        ("echo $GONE", "FAILED"),
        ("false | true", "FAILED"),
        ("echo ${GONE:-}", "SUCCEEDED"),
    ],
)
def test_commands_run_with_the_options_that_the_page_names(
    server: ServerProcess, command: str, state: str
) -> None:
    assert run(server, Job.from_command(command)).state == state


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("printf no-end >&2", ["no-end", "opai: --save 'modles/*.pt' matched no file"]),
        ("true", ["opai: --save 'modles/*.pt' matched no file"]),
        ("exit 3", []),
    ],
)
def test_a_pattern_that_matched_nothing_is_told_at_the_end_of_stderr(
    server: ServerProcess, command: str, said: list[str]
) -> None:
    job = Job.from_command(f"touch kept; {command}").save_outputs("modles/*.pt", "kept")
    run(server, job)
    assert server.cluster().read_log(job.name, stream="stderr").splitlines() == said
    assert outputs(server, job) == {"kept": ""}


LISTENING = """
    import time
    from openpai.runtime import Runtime
    app = Runtime.from_env()

    @app.on("checkpoint")
    def mark():
        print("marked", flush=True)

    @app.on("main")
    def main():
        print("ready", flush=True)
        time.sleep(60)

    app.run()
    """


def test_a_checkpoint_is_asked_for_from_outside(server: ServerProcess) -> None:
    cluster = server.cluster()
    job = begun(Job.from_command(program(LISTENING), name="listens").submit(cluster))
    assert cluster.signal("listens") == ["worker/0"]
    assert cluster.signal("listens", task="worker/0") == ["worker/0"]
    begun(job, "marked")
    with pytest.raises(NotFoundError, match="has no task worker/7"):
        cluster.signal("listens", task="worker/7")
    job.stop()
    job.wait(30)
    with pytest.raises(ConflictError, match=r"no task of job .*listens runs"):
        cluster.signal("listens")


def test_nobody_is_killed_who_does_not_listen(server: ServerProcess) -> None:
    cluster = server.cluster()
    command = "echo $PAI_SDK_TASK_DIR; echo ready; sleep 60"
    job = begun(Job.from_command(command, name="deaf").submit(cluster))
    folder = Path(next(record.text.strip() for record in job.logs() if isinstance(record, LogLine)))
    with pytest.raises(ConflictError, match=r"no task of job .*deaf listens for 'checkpoint'"):
        cluster.signal("deaf")
    # A task that names a process of somebody else.
    (folder / "checkpoint.pid").write_text(str(os.getpid()))
    with pytest.raises(ConflictError, match="listens"):
        cluster.signal("deaf")
    assert job.status() == "RUNNING"
    job.stop()


def test_deployment_commands_are_left_to_the_program_where_asked(server: ServerProcess) -> None:
    text = """
        from openpai.runtime import Runtime
        app = Runtime.from_env()
        app.on("main")(lambda: print("main", flush=True))
        app.on("end")(lambda: print("own end", flush=True))
        app.run()
        """
    job = Job.from_command(program(text)).parameter("word", "hello")
    job.deployment("d", "worker", pre="echo pre <% $parameters.word %>", post="echo post")
    twin = job.clone().use_callbacks()
    run(server, job)
    assert printed(job) == [
        "pre hello",
        "main",
        "own end",
    ]  # the program replaced the shell, and `post` with it
    run(server, twin)
    assert printed(twin) == ["pre hello", "main", "own end"]
    bare = (
        Job.from_command("echo main")
        .use_callbacks()
        .deployment("d", "worker", pre="echo pre", post="echo post")
    )
    run(server, bare)
    assert printed(bare) == ["main"]


def test_the_submitters_path_wins_on_a_local_server(server: ServerProcess, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "greet"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho hello from $VIRTUAL_ENV\n")
    tool.chmod(0o755)
    environment = {
        "PATH": f"{tool.parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": "here",
        "LD_PRELOAD": "/evil.so",
    }
    job = Job.from_command("greet; echo [${LD_PRELOAD:-}] [$CONDA_PREFIX]").extra(
        "openpaisdk", {"environment": environment}
    )
    server.cluster().submit(job.spec)  # as the client of the embedded cluster sends it
    job.cluster, job.user = server.cluster(), server.user
    assert job.wait(30).state == "SUCCEEDED", printed(job)
    assert printed(job) == ["hello from here", "[] []"]


def wheel(folder: Path) -> Path:
    """A package with a module and a program, without any build tool."""
    files = {
        "tinything.py": "def main():\n    print('tiny thing')\n",
        "tinything-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n",
        "tinything-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tinything-1.0.dist-info/entry_points.txt": "[console_scripts]\ntinything = tinything:main\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    path = folder / "tinything-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, "tinything-1.0.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def test_packages_are_installed_beside_the_program(server: ServerProcess, tmp_path: Path) -> None:
    command = "tinything; python3 -c 'import tinything; print(tinything.__file__)'; pwd"
    job = Job.from_command(command, packages=[str(wheel(tmp_path))])
    assert run(server, job).state == "SUCCEEDED", printed(job)
    said, module, folder = printed(job)
    assert said == "tiny thing"
    assert module == f"{folder}/.packages/tinything.py"


def test_a_package_that_cannot_be_installed_is_told(server: ServerProcess, tmp_path: Path) -> None:
    job = Job.from_command("echo not reached", packages=[str(tmp_path / "nothing.whl")])
    found = run(server, job)
    assert (found.state, found.exit_code) == ("FAILED", 126)
    assert printed(job)[-1] == f"error: cannot install with pip: {tmp_path}/nothing.whl"


@pytest.mark.real("podman")
@pytest.mark.timeout(240)
def test_containers_have_the_runtime_and_hear_signals(tmp_path: Path) -> None:
    from support.images import busybox_image

    command = """trap 'echo marked' USR1
        busybox ls $PYTHONPATH/openpai/runtime/app.py
        busybox touch $PYTHONPATH/x || echo read-only
        echo $$ > $PAI_SDK_TASK_DIR/checkpoint.pid
        echo kept > result
        echo ready
        while :; do busybox sleep 0.1; done"""
    server = ServerProcess(tmp_path / "server", "--launcher", "container").start()
    try:
        job = Job.from_command(command, image=busybox_image(), mem=128).save_outputs("result")
        begun(job.submit(server.cluster()))
        assert server.cluster().signal(job.name) == ["worker/0"]
        begun(job, "marked")
        job.stop()
        assert job.wait(60).state == "STOPPED"
        assert "read-only" in printed(job)
        assert outputs(server, job) == {"result": "kept\n"}
    finally:
        server.stop()
