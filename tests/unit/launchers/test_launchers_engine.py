"""Calling podman and docker: command lines, learning from refusals, passwords; with pretended programs."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from openpaisdk.errors import ConfigError, UnavailableError
from openpaisdk.launchers import LaunchError, TaskSpec, attempts
from openpaisdk.launchers.auto import AutoLauncher
from openpaisdk.launchers.container import ContainerLauncher
from openpaisdk.launchers.engine import (
    Adaptation,
    ContainerState,
    Engine,
    adapt,
    find_engine,
    parse_states,
    run_argv,
)
from openpaisdk.launchers.folder import Intent, TaskFolder
from support.launcher_contract import Server

SPEC = TaskSpec(
    key="job-0", folder="/t", script="true", image="img", cpu=2, memory_mb=512, shm_mb=64, gpus=(1, 3)
)


def rendered(kind: str, adaptation: Adaptation = Adaptation(), **more: object) -> str:  # noqa: B008
    options = {"real_gpus": True, "environ": {}, **more}
    return " ".join(
        run_argv(kind, SPEC, name="n", image="img", workdir="/t/work", adaptation=adaptation, **options)  # type: ignore[arg-type]
    )


def test_a_task_as_a_command_line() -> None:
    assert rendered("podman") == (
        "run --detach --pull never --name n --label openpaisdk.task=job-0 --network host --user 0:0 "
        "--log-driver none --security-opt label=disable "
        "--memory 512m --memory-swap 512m --cpus 2 --shm-size 64m "
        "--device nvidia.com/gpu=1 --device nvidia.com/gpu=3 --volume /t:/t:rw "
        "--volume /t/intent.json:/t/intent.json:ro --workdir /t/work --entrypoint /bin/sh img /t/run.sh"
    )
    assert '--gpus "device=1,3"' in rendered("docker")
    assert "gpu" not in rendered("docker", real_gpus=False)
    assert "--tmpfs /x " in rendered("podman", environ={"OPAI_CONTAINER_FLAGS": "--tmpfs /x"})


def test_what_a_machine_needs_is_added() -> None:
    assert rendered("podman", Adaptation(runtime="runc")).startswith("--runtime runc run ")
    assert rendered("docker", Adaptation(runtime="runc")).startswith("run --runtime runc ")
    assert "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024" in rendered("podman", Adaptation(ulimits=2))
    assert "--memory" not in rendered("podman", Adaptation(limits=False))


def test_refusals_teach() -> None:
    usual = Adaptation()
    assert adapt(usual, "error setting rlimit type 7: operation not permitted", has_runc=True) == Adaptation(
        ulimits=1
    )
    assert adapt(Adaptation(ulimits=2), "error setting rlimit type 7", has_runc=True) is None
    assert adapt(usual, "crun: cgroups in hybrid mode not supported", has_runc=True) == Adaptation(
        runtime="runc"
    )
    assert adapt(usual, "the memory controller is not available", has_runc=True) == Adaptation(limits=False)
    assert adapt(usual, "no such file or directory", has_runc=True) is None


def test_states_are_read() -> None:
    text = "/a running 12 0 false\nb exited 0 137 true\nError: no such object\n"
    assert parse_states(text) == {
        "a": ContainerState("running", 12, 0, False),
        "b": ContainerState("exited", 0, 137, True),
    }


def pretend(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return program


def test_the_first_engine_that_answers_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine() is None
    pretend(tmp_path, "podman", "exit 1")
    pretend(tmp_path, "docker", "exit 0")
    found = find_engine()
    assert found and found.kind == "docker"
    assert find_engine("podman") is None
    with pytest.raises(ConfigError, match="lxc"):
        find_engine("lxc")
    with pytest.raises(UnavailableError):
        ContainerLauncher(engine="podman").engine()


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_a_registry_password_goes_through_a_private_file(tmp_path: Path, kind: str) -> None:
    seen = tmp_path / "seen"
    script = f"""
echo "$@" > {seen}-argv
for word; do
    [ -d "$word" ] && word=$word/config.json
    [ -f "$word" ] && cat "$word" > {seen}-file && ls -l "$word" | cut -c1-10 > {seen}-mode
done
echo layer
"""
    engine = Engine(str(pretend(tmp_path / "bin", kind, script)), kind)
    lines: list[str] = []
    answer = asyncio.run(engine.pull("reg.example/img", ("reg.example", "me", "hunter2"), lines.append))
    assert answer.code == 0 and lines == ["layer"]
    argv = Path(f"{seen}-argv").read_text()
    assert "hunter2" not in argv
    assert json.loads(Path(f"{seen}-file").read_text()) == {
        "auths": {"reg.example": {"auth": "bWU6aHVudGVyMg=="}}
    }
    assert Path(f"{seen}-mode").read_text() == "-rw-------\n"
    assert not any(Path(word).exists() for word in argv.split() if "opai-auth" in word)


def test_a_slow_engine_is_given_up(tmp_path: Path) -> None:
    engine = Engine(str(pretend(tmp_path / "bin", "podman", "exec sleep 60")), "podman")
    answer = asyncio.run(engine.call("version", timeout=0.05))
    assert answer.code == 124 and "did not answer" in answer.err


@pytest.mark.parametrize(("says", "code"), [("manifest unknown", 254), ("connection refused", -1201)])
def test_pulls_are_told_and_their_failures_classified(tmp_path: Path, says: str, code: int) -> None:
    script = f'case "$1" in image) exit 1;; pull) echo "Error: {says}" >&2; exit 125;; esac'
    engine = Engine(str(pretend(tmp_path / "bin", "podman", script)), "podman")

    async def story() -> None:
        server = Server(ContainerLauncher(find=lambda wanted: engine))
        spec = TaskSpec(key="job-0", folder=str(tmp_path / "task"), script="true", image="img")
        with pytest.raises(LaunchError) as caught:
            await server.launcher.launch([spec])
        assert caught.value.task_code == code and says in str(caught.value)
        assert server.reasons() == ["Pulling"]
        assert not (tmp_path / "task").exists()
        await server.launcher.close()

    asyncio.run(story())


def test_auto_without_an_engine_says_that_the_image_is_not_used(tmp_path: Path) -> None:
    async def story() -> None:
        server = Server(AutoLauncher(find=lambda wanted: None))
        gang = [
            TaskSpec(key=f"job-{n}", folder=str(tmp_path / f"task-{n}"), script="echo hi", image="img")
            for n in (0, 1)
        ]
        handles = await server.launcher.launch(gang)
        await server.ended(*handles)
        assert all(handle.startswith("process:") for handle in handles)
        assert server.reasons().count("ImageNotUsed") == 1
        await server.launcher.forget(handles)
        await server.launcher.close()

    asyncio.run(story())


def test_engines_are_not_given_the_servers_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPAI_TOKEN", "secret")
    assert "OPAI_TOKEN" in os.environ and "OPAI_TOKEN" not in Engine("podman", "podman").environment


def test_tasks_of_an_engine_that_does_not_answer_count_as_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "AGAIN_SECONDS", 0.05)
    answer = tmp_path / "answer"
    answer.write_text("echo 'database is locked' >&2; exit 125")
    engine = Engine(str(pretend(tmp_path / "bin", "podman", f". {answer}")), "podman")
    folder = TaskFolder(str(tmp_path / "task"))
    folder.prepare({})
    folder.intend(Intent(key="job-0", launcher="container", workdir="/", container="name"))

    async def story() -> None:
        server = Server(ContainerLauncher(find=lambda wanted: engine))
        handle = f"container:{folder.path}"
        assert server.launcher.observe([handle])[handle].state == "running"
        answer.write_text("echo 'no such container' >&2; exit 125")
        [seen] = await server.ended(handle)
        assert seen.state == "lost"
        await server.launcher.close()

    asyncio.run(story())


def test_without_an_engine_a_container_cannot_be_launched(tmp_path: Path) -> None:
    async def story() -> None:
        launcher = ContainerLauncher(find=lambda wanted: None)
        with pytest.raises(LaunchError, match="no container engine") as caught:
            await launcher.launch([TaskSpec(key="a", folder=str(tmp_path / "a"), script="", image="img")])
        assert caught.value.task_code == -1201 and caught.value.hint
        await launcher.close()

    asyncio.run(story())
