"""What the process launcher promises beyond the contract: whole trees, limits, crashes, hostile tasks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from openpaisdk.launchers import LaunchError, TaskSpec
from openpaisdk.launchers.folder import TaskFolder
from openpaisdk.launchers.limits import Limits, find_limits
from openpaisdk.launchers.process import ProcessLauncher
from support.launcher_contract import Server
from support.leftovers import assert_nothing_left, processes_of

HAS_CGROUPS = find_limits().memory is not None
needs_cgroups = pytest.mark.skipif(not HAS_CGROUPS, reason="no writable cgroup with a memory controller here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert_nothing_left(tmp_path)


@pytest.fixture(params=["cgroups", "rlimits"])
def make(request: pytest.FixtureRequest) -> Callable[[], ProcessLauncher]:
    if request.param == "cgroups":
        if not HAS_CGROUPS:
            pytest.skip("no writable cgroup with a memory controller here")
        return ProcessLauncher
    return lambda: ProcessLauncher(find_limits=lambda: Limits("rlimit"))


def tell(make: Callable[[], ProcessLauncher], story: Callable[[Server], Awaitable[None]]) -> None:
    async def told() -> None:
        server = Server(make())
        try:
            await story(server)
        finally:
            await server.launcher.close()

    asyncio.run(told())


def task(folder: Path, script: str, **more: Any) -> TaskSpec:
    more.setdefault("memory_mb", 256)
    return TaskSpec(key=folder.name, folder=str(folder), script=script, **more)


def test_bash_stops_at_the_first_failure(tmp_path: Path) -> None:
    scripts = {"errexit": "false\necho no", "nounset": 'echo "$NOT_SET"', "pipefail": "false | true\necho no"}

    async def story(server: Server) -> None:
        handles = await server.launcher.launch(
            [task(tmp_path / name, text) for name, text in scripts.items()]
        )
        for handle, seen in zip(handles, await server.ended(*handles), strict=True):
            assert seen.exit and seen.exit.code != 0
            assert server.launcher.logs(handle, "stdout", 0) == b""

    tell(ProcessLauncher, story)


FAR_CHILDREN = """
setsid sleep 611 &
(setsid sh -c 'trap "" TERM; sleep 612 & wait' & ) &
nohup sleep 613 >/dev/null 2>&1 &
wait_for=ready; echo $wait_for
"""


def test_kill_takes_the_whole_tree(tmp_path: Path, make: Callable[[], ProcessLauncher]) -> None:
    async def story(server: Server) -> None:
        spec = task(tmp_path / "task-0", FAR_CHILDREN + "sleep 614")
        [handle] = await server.launcher.launch([spec])
        await server.printed(handle, "ready")
        await server.launcher.kill([handle], grace=0.5)
        assert processes_of(tmp_path) == []

    tell(make, story)


def test_the_end_of_the_script_is_the_end_of_the_task(
    tmp_path: Path, make: Callable[[], ProcessLauncher]
) -> None:
    async def story(server: Server) -> None:
        [handle] = await server.launcher.launch([task(tmp_path / "task-0", FAR_CHILDREN + "exit 5")])
        [seen] = await server.ended(handle)
        assert seen.exit and seen.exit.code == 5

    tell(make, story)


def test_an_adopted_tree_is_killed_too(tmp_path: Path, make: Callable[[], ProcessLauncher]) -> None:
    spec = task(tmp_path / "task-0", FAR_CHILDREN + "sleep 614")

    async def first(server: Server) -> None:
        [handle] = await server.launcher.launch([spec])
        await server.printed(handle, "ready")

    async def second(server: Server) -> None:
        await server.launcher.kill([f"process:{spec.folder}"], grace=0.5)
        assert processes_of(tmp_path) == []

    tell(make, first)
    tell(make, second)


def test_a_task_may_end_itself_properly_within_the_grace(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        script = "trap 'echo saved; exit 7' TERM\necho ready\nsleep 600 & wait"
        [handle] = await server.launcher.launch([task(tmp_path / "task-0", script)])
        await server.printed(handle, "ready")
        await server.launcher.kill([handle], grace=10)
        [seen] = await server.ended(handle)
        assert seen.exit and seen.exit.code == 7
        assert server.launcher.logs(handle, "stdout", 0) == b"ready\nsaved\n"

    tell(ProcessLauncher, story)


GREEDY = "python3 -c \"x = bytearray(400 << 20); print('got it')\""


@needs_cgroups
def test_too_much_memory_is_told_apart_from_other_deaths(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        handles = await server.launcher.launch(
            [task(tmp_path / "big", GREEDY, memory_mb=100), task(tmp_path / "small", "kill -9 $$")]
        )
        big, small = await server.ended(*handles)
        assert big.exit and big.exit.oom and big.exit.code == 137
        assert small.exit and not small.exit.oom and small.exit.code == 137
        assert server.reasons() == ["LimitsApplied"]

    tell(ProcessLauncher, story)


def test_without_cgroups_memory_is_limited_per_process(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        handles = await server.launcher.launch(
            [
                task(tmp_path / "cpu", GREEDY, memory_mb=100),
                task(tmp_path / "gpu", GREEDY, memory_mb=100, gpus=(0,)),
            ]
        )
        limited, free = await server.ended(*handles)
        assert limited.exit and limited.exit.code == 1
        assert free.exit and free.exit.code == 0
        assert server.reasons() == ["LimitsNotEnforced"]

    tell(lambda: ProcessLauncher(find_limits=lambda: Limits("rlimit")), story)


def test_output_of_any_kind_and_size(tmp_path: Path) -> None:
    scripts = {
        "binary": r"printf '\000\377\001'",
        "closed": "exec >&- 2>&-\nsleep 0.01",
        "large": "head -c 200000000 /dev/zero",
    }

    async def story(server: Server) -> None:
        handles = await server.launcher.launch(
            [task(tmp_path / name, text) for name, text in scripts.items()]
        )
        assert [seen.exit.code for seen in await server.ended(*handles) if seen.exit] == [0, 0, 0]
        binary, closed, large = handles
        assert server.launcher.logs(binary, "stdout", 0) == b"\x00\xff\x01"
        assert server.launcher.logs(closed, "stdout", 0) == b""
        path = server.launcher.log_path(large, "stdout")
        assert path and path.stat().st_size == 200_000_000
        assert len(server.launcher.logs(large, "stdout", 199_999_990)) == 10
        await server.launcher.forget(handles)

    tell(ProcessLauncher, story)


def test_secrets_are_in_a_private_file_and_on_no_command_line(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        spec = task(tmp_path / "task-0", "echo up\nsleep 600", env={"PASSWORD": "hunter2"})
        [handle] = await server.launcher.launch([spec])
        await server.printed(handle, "up")
        assert (tmp_path / "task-0" / "env.sh").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "task-0").stat().st_mode & 0o777 == 0o700
        assert not any("hunter2" in line for line in processes_of(tmp_path))
        plan = server.launcher.exec_command(handle, ["sh", "-c", 'echo "$PASSWORD in $PWD"'])
        assert "hunter2" not in " ".join(plan.argv) + " ".join(plan.env.values())
        entered = await asyncio.create_subprocess_exec(
            *plan.argv, env=plan.env, cwd=plan.cwd, stdout=asyncio.subprocess.PIPE
        )
        answer, _ = await entered.communicate()
        assert answer.decode() == f"hunter2 in {spec.folder}/work\n"
        await server.launcher.kill([handle], grace=1)

    tell(ProcessLauncher, story)


def test_what_was_entered_ends_with_the_task(tmp_path: Path, make: Callable[[], ProcessLauncher]) -> None:
    async def story(server: Server) -> None:
        [handle] = await server.launcher.launch([task(tmp_path / "task-0", "echo up\nsleep 600")])
        await server.printed(handle, "up")
        plan = server.launcher.exec_command(handle, ["sleep", "600"])
        entered = await asyncio.create_subprocess_exec(*plan.argv, env=plan.env, cwd=plan.cwd)
        while psutil.Process(entered.pid).name() != "sleep":
            await asyncio.sleep(0.01)
        await server.launcher.kill([handle], grace=1)
        assert await asyncio.wait_for(entered.wait(), 10) < 0

    tell(make, story)


def test_gpus_and_the_servers_own_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPAI_TOKEN", "secret")
    monkeypatch.setenv("PAI_JOB_NAME", "outer")
    monkeypatch.setenv("KEPT", "yes")

    async def story(server: Server) -> None:
        spec = task(tmp_path / "task-0", "env", gpus=(1, 3), env={"PAI_TASK_INDEX": "0"})
        [handle] = await server.launcher.launch([spec])
        await server.ended(handle)
        lines = server.launcher.logs(handle, "stdout", 0).decode().splitlines()
        assert {"CUDA_VISIBLE_DEVICES=1,3", "PAI_TASK_INDEX=0", "KEPT=yes"} <= set(lines)
        assert not any(line.startswith(("OPAI_TOKEN", "PAI_JOB_NAME")) for line in lines)

    tell(ProcessLauncher, story)


def test_an_image_that_is_not_used_is_mentioned_once(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        gang = [task(tmp_path / f"task-{n}", "true", image="pytorch:2") for n in range(3)]
        handles = await server.launcher.launch(gang)
        await server.ended(*handles)
        assert server.reasons().count("ImageNotUsed") == 1
        assert "pytorch:2" in next(event[3] for event in server.events if event[2] == "ImageNotUsed")

    tell(ProcessLauncher, story)


def test_a_wrapper_that_was_killed_takes_its_task_along(
    tmp_path: Path, make: Callable[[], ProcessLauncher]
) -> None:
    async def story(server: Server) -> None:
        [handle] = await server.launcher.launch([task(tmp_path / "task-0", "echo up\nsleep 600")])
        await server.printed(handle, "up")
        claim = TaskFolder(str(tmp_path / "task-0")).claim()
        assert claim
        os.kill(claim.pid, signal.SIGKILL)
        [seen] = await server.ended(handle)
        assert seen.exit and seen.exit.code == 137

    tell(make, story)


@pytest.mark.parametrize("change", [{"boot": "another"}, {"ticks": 1}])
def test_another_boot_or_a_reused_process_id_is_lost(tmp_path: Path, change: dict[str, Any]) -> None:
    spec = task(tmp_path / "task-0", "echo up\nsleep 600")
    record = tmp_path / "task-0" / "started.json"

    async def first(server: Server) -> None:
        [handle] = await server.launcher.launch([spec])
        await server.printed(handle, "up")

    async def second(server: Server) -> None:
        [seen] = server.launcher.observe([f"process:{spec.folder}"]).values()
        assert seen.state == "lost" and seen.exit is None

    tell(ProcessLauncher, first)
    truth = record.read_text()
    pid = json.loads(truth)["pid"]
    record.write_text(json.dumps(json.loads(truth) | change))
    tell(ProcessLauncher, second)
    if psutil.pid_exists(pid):
        os.killpg(pid, signal.SIGKILL)


def test_a_claim_that_could_not_be_written_is_found_by_its_wrapper(tmp_path: Path) -> None:
    spec = task(tmp_path / "task-0", "echo up\nsleep 600")

    async def first(server: Server) -> None:
        [handle] = await server.launcher.launch([spec])
        await server.printed(handle, "up")

    async def second(server: Server) -> None:
        handle = f"process:{spec.folder}"
        assert server.launcher.observe([handle])[handle].state == "running"
        await server.launcher.kill([handle], grace=5)
        assert server.launcher.observe([handle])[handle].state == "ended"

    tell(ProcessLauncher, first)
    (tmp_path / "task-0" / "started.json").write_text("")
    tell(ProcessLauncher, second)


def test_a_crash_between_intent_and_start_is_made_good_by_launching_again(tmp_path: Path) -> None:
    spec = task(tmp_path / "task-0", "echo ran")

    async def crash(server: Server) -> None:
        server.launcher._prepare(spec)  # type: ignore[attr-defined]

    async def again(server: Server) -> None:
        [handle] = await server.launcher.launch([spec])
        await server.ended(handle)
        assert server.launcher.logs(handle, "stdout", 0) == b"ran\n"

    tell(ProcessLauncher, crash)
    tell(ProcessLauncher, again)


def test_what_was_called_lost_never_starts(tmp_path: Path) -> None:
    spec = task(tmp_path / "task-0", "echo ran")

    async def crash(server: Server) -> None:
        server.launcher._prepare(spec)  # type: ignore[attr-defined]

    async def look(server: Server) -> None:
        handle = f"process:{spec.folder}"
        assert server.launcher.observe([handle])[handle].state == "lost"
        subprocess.run(["/bin/sh", f"{spec.folder}/run.sh"], check=True)
        assert await server.launcher.launch([spec]) == [handle]
        [seen] = await server.ended(handle)
        assert seen.state == "lost" and seen.started_at is None
        assert server.launcher.logs(handle, "stdout", 0) == b""

    tell(ProcessLauncher, crash)
    tell(ProcessLauncher, look)


SERVER = """
import asyncio, os, sys
from openpaisdk.launchers import TaskSpec, default_launcher
async def main(root):
    launcher = default_launcher("process")
    print("ready", flush=True)
    for n in range(8):
        script = f"echo ran >> {root}/runs-{n}; sleep 0.3; exit {n}"
        await launcher.launch([TaskSpec(key=f"task-{n}", folder=f"{root}/task-{n}", script=script)])
    await asyncio.sleep(600)
asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("moment", [0.0, 0.004, 0.012, 0.1])
def test_a_killed_server_loses_nothing_and_repeats_nothing(tmp_path: Path, moment: float) -> None:
    crashed = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE)
    assert crashed.stdout and crashed.stdout.readline()
    try:
        crashed.wait(moment or 0.0001)
    except subprocess.TimeoutExpired:
        crashed.kill()
    crashed.wait()
    crashed.stdout.close()

    async def story(server: Server) -> None:
        specs = [
            task(
                tmp_path / f"task-{n}",
                f"echo ran >> {tmp_path}/runs-{n}; sleep 0.3; exit {n}",
                memory_mb=1024,
            )
            for n in range(8)
        ]
        handles = await server.launcher.launch(specs)
        seen = await server.ended(*handles)
        assert [one.exit.code for one in seen if one.exit] == list(range(8))
        assert [(tmp_path / f"runs-{n}").read_text() for n in range(8)] == ["ran\n"] * 8

    tell(ProcessLauncher, story)


@needs_root
def test_a_full_disk_costs_the_log_and_not_the_exit_code(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], check=True)

    async def story(server: Server) -> None:
        script = "head -c 1000000 /dev/zero || true\nexit 6"
        [handle] = await server.launcher.launch([task(small / "task-0", script)])
        await asyncio.sleep(0)
        [seen] = await server.ended(handle)
        assert seen.exit and seen.exit.code == 6
        assert TaskFolder(str(small / "task-0")).recorded_exit() is not None
        with pytest.raises(LaunchError) as caught:
            await server.launcher.launch([task(small / f"more-{n}", "echo " + "x" * 40000) for n in range(9)])
        assert "No space left" in str(caught.value)

    try:
        tell(ProcessLauncher, story)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_hostile_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of somebody else")

    async def story(server: Server) -> None:
        script = f"cd ..; rm stdout stderr; ln -s {tmp_path}/secret stdout; mkfifo stderr"
        [handle] = await server.launcher.launch([task(tmp_path / "task-0", script)])
        await server.ended(handle)
        assert server.launcher.logs(handle, "stdout", 0) == b""
        assert server.launcher.logs(handle, "stderr", 0) == b""
        assert server.launcher.log_path(handle, "stdout") is None
        await server.launcher.forget([handle])
        assert (tmp_path / "secret").exists()

    tell(ProcessLauncher, story)


def test_a_value_no_shell_can_hold_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        gang = [task(tmp_path / "task-0", "sleep 600"), task(tmp_path / "task-1", "true", env={"A": "\0"})]
        with pytest.raises(LaunchError, match="NUL") as caught:
            await server.launcher.launch(gang)
        assert caught.value.task_code == -200
        handles = [f"process:{spec.folder}" for spec in gang]
        assert {seen.state for seen in server.launcher.observe(handles).values()} <= {"lost", "ended"}

    tell(ProcessLauncher, story)
