"""The container and auto launchers keep the contract, with real podman."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.launchers import Launcher, LaunchError, TaskSpec
from openpaisdk.launchers.auto import AutoLauncher
from openpaisdk.launchers.container import ContainerLauncher
from openpaisdk.launchers.engine import Adaptation, run_argv
from support.images import busybox_image, python_image
from support.launcher_contract import LauncherContract, Server
from support.leftovers import assert_nothing_left

pytestmark = pytest.mark.real("podman")


@pytest.fixture(autouse=True)
def real_home(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root, podman keeps its images in the home of whoever runs it."""
    monkeypatch.setenv("HOME", pwd.getpwuid(os.getuid()).pw_dir)


@pytest.fixture(autouse=True)
def nothing_left(real_home: None, tmp_path: Path) -> Iterator[None]:
    yield
    assert_nothing_left(tmp_path)
    found = json.loads(subprocess.check_output(["podman", "ps", "--all", "--format", "json"]))
    folders = [mount for container in found for mount in container.get("Mounts") or []]
    assert not [folder for folder in folders if str(tmp_path) in folder], "containers left behind"


@pytest.fixture
def image(real_home: None) -> str:
    return busybox_image()


class TestContainerLauncher(LauncherContract):
    @pytest.fixture(autouse=True)
    def _image(self, image: str) -> None:
        self.image = image

    def make(self) -> Launcher:
        return ContainerLauncher(engine="podman", fake_gpus=0)

    def task(self, folder: Path, script: str, **more: Any) -> TaskSpec:
        return super().task(folder, script, image=self.image, **more)


class TestAutoLauncher(LauncherContract):
    """Without images it is the process launcher under another name."""

    def make(self) -> Launcher:
        return AutoLauncher()

    def test_what_never_started_is_lost(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            handles = [f"process:{tmp_path}/never", f"container:{tmp_path}/never", "odd"]
            assert {seen.state for seen in server.launcher.observe(handles).values()} == {"lost"}

        self.run(story)


def tell(launcher: Launcher, story: Callable[[Server], Awaitable[None]]) -> None:
    async def told() -> None:
        server = Server(launcher)
        try:
            await story(server)
        finally:
            await server.launcher.close()

    asyncio.run(told())


def task(folder: Path, script: str, **more: Any) -> TaskSpec:
    more.setdefault("memory_mb", 64)
    return TaskSpec(key=folder.name, folder=str(folder), script=script, **more)


def test_a_gang_that_cannot_start_whole_leaves_nothing(tmp_path: Path, image: str) -> None:
    async def story(server: Server) -> None:
        gang = [task(tmp_path / "task-0", "sleep 600", image=image)]
        gang.append(
            task(tmp_path / "task-1", "sleep 600", image=image, mounts=((str(tmp_path / "no"), "/no", True),))
        )
        with pytest.raises(LaunchError) as caught:
            await server.launcher.launch(gang)
        assert caught.value.key == "task-1" and caught.value.task_code == -1201
        seen = server.launcher.observe([f"container:{spec.folder}" for spec in gang])
        assert {one.state for one in seen.values()} <= {"lost", "ended"}

    tell(ContainerLauncher(engine="podman", fake_gpus=0), story)


def test_an_image_that_is_nowhere(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        with pytest.raises(LaunchError) as caught:
            await server.launcher.launch(
                [task(tmp_path / "task-0", "true", image="localhost/opai-none:Bad Name")]
            )
        assert caught.value.task_code in (254, -1201) and caught.value.hint
        with pytest.raises(LaunchError) as caught:
            await server.launcher.launch([task(tmp_path / "task-0", "true")])
        assert caught.value.task_code == 254

    tell(ContainerLauncher(engine="podman", fake_gpus=0), story)


def test_memory_limit_mounts_shm_and_folder(tmp_path: Path, image: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "given").write_text("from outside\n")
    script = "pwd; cat /data/given; touch /data/x 2>/dev/null || echo readonly; echo kept > made"

    async def story(server: Server) -> None:
        fine = task(
            tmp_path / "fine",
            script,
            image=image,
            shm_mb=16,
            mounts=((str(tmp_path / "data"), "/data", True),),
        )
        greedy = task(tmp_path / "greedy", "x=$(head -c 300000000 /dev/urandom | cat -v)", image=image)
        handles = await server.launcher.launch([fine, greedy])
        well, dead = await server.ended(*handles)
        assert well.exit and well.exit.code == 0
        assert (
            server.launcher.logs(handles[0], "stdout", 0).decode()
            == f"{fine.folder}/work\nfrom outside\nreadonly\n"
        )
        assert (tmp_path / "fine" / "work" / "made").read_text() == "kept\n"
        assert dead.exit and dead.exit.oom and dead.exit.code != 0
        assert server.reasons() == ["LimitsApplied"]
        await server.launcher.forget(handles)

    tell(ContainerLauncher(engine="podman", fake_gpus=0), story)


def test_entering_a_container(tmp_path: Path, image: str) -> None:
    async def story(server: Server) -> None:
        spec = task(tmp_path / "task-0", "echo up; sleep 600", image=image, env={"PASSWORD": "hunter2"})
        [handle] = await server.launcher.launch([spec])
        await server.printed(handle, "up")
        command = ["sh", "-c", 'echo "$PASSWORD in $PWD"; ls /']
        plan = server.launcher.exec_command(handle, command)
        entered = await asyncio.create_subprocess_exec(
            *plan.argv, env=plan.env, cwd=plan.cwd, stdout=asyncio.subprocess.PIPE
        )
        answer, _ = await entered.communicate()
        lines = answer.decode().splitlines()
        assert lines[0] == f"hunter2 in {spec.folder}/work" and "boot" not in lines
        assert "hunter2" not in subprocess.check_output(["podman", "inspect", "--latest"]).decode()
        await server.launcher.kill([handle], grace=0)
        [seen] = await server.ended(handle)
        assert seen.exit and seen.exit.code == 137
        await server.launcher.forget([handle])

    tell(ContainerLauncher(engine="podman", fake_gpus=0), story)


def test_auto_uses_the_image_where_one_was_asked_for(tmp_path: Path, image: str) -> None:
    async def story(server: Server) -> None:
        script = "test -e /usr/share && echo outside || echo inside"
        gang = [task(tmp_path / "task-0", script, image=image), task(tmp_path / "task-1", script)]
        handles = await server.launcher.launch(gang)
        await server.ended(*handles)
        assert [server.launcher.logs(handle, "stdout", 0) for handle in handles] == [
            b"inside\n",
            b"outside\n",
        ]
        assert "ImageNotUsed" not in server.reasons()
        await server.launcher.forget(handles)

    tell(AutoLauncher(engine="podman", fake_gpus=0), story)


SERVE = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
print(listening.accept()[0].recv(99).decode())
"""
ASK = """
import os, socket
socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))).sendall(b"gradient")
"""


def test_a_container_that_was_made_and_not_started_is_started(tmp_path: Path, image: str) -> None:
    spec = task(tmp_path / "task-0", "echo ran", image=image)

    async def crash(server: Server) -> None:
        intent = server.launcher._prepare(spec).intent  # type: ignore[attr-defined]
        argv = run_argv(
            "podman",
            spec,
            name=intent.container,
            image=image,
            workdir=intent.workdir,
            adaptation=Adaptation(ulimits=2),
            real_gpus=False,
            environ={},
        )
        made = ["create" if word == "run" else word for word in argv if word != "--detach"]
        subprocess.run(["podman", *made], check=True, stdout=subprocess.DEVNULL)

    async def again(server: Server) -> None:
        [handle] = await server.launcher.launch([spec])
        [seen] = await server.ended(handle)
        assert seen.exit and seen.exit.code == 0
        assert server.launcher.logs(handle, "stdout", 0) == b"ran\n"
        await server.launcher.forget([handle])

    tell(ContainerLauncher(engine="podman", fake_gpus=0), crash)
    tell(ContainerLauncher(engine="podman", fake_gpus=0), again)


def test_two_roles_exchange_data_over_their_ports(tmp_path: Path) -> None:
    image = python_image()
    serve = f"python3 - <<'END'\n{SERVE}END"
    ask = f"python3 - <<'END'\n{ASK}END"

    async def story(server: Server) -> None:
        [ps] = await server.launcher.launch([task(tmp_path / "ps-0", serve, image=image, memory_mb=256)])
        await server.printed(ps, "\n")
        port = server.launcher.logs(ps, "stdout", 0).decode().strip()
        spec = task(tmp_path / "worker-0", ask, image=image, memory_mb=256, env={"PORT": port})
        [worker] = await server.launcher.launch([spec])
        await server.ended(ps, worker)
        assert server.launcher.logs(ps, "stdout", 0).decode().split() == [port, "gradient"]
        await server.launcher.forget([ps, worker])

    tell(ContainerLauncher(engine="podman", fake_gpus=0), story)
