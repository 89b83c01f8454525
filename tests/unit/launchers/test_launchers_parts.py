"""The small parts of launchers: registry, GPUs, watching, the machine, records in a folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk.errors import ConfigError
from openpaisdk.launchers import LAUNCHERS, Exit, Launcher, default_launcher
from openpaisdk.launchers.folder import Claim, TaskFolder
from openpaisdk.launchers.gpus import find_gpus, parse_indexes
from openpaisdk.launchers.machine import this_machine
from openpaisdk.launchers.watch import ExitWatch, boot_id, is_running, reap, start_ticks


@pytest.mark.parametrize("name", sorted(LAUNCHERS))
def test_every_name_gives_a_launcher(name: str) -> None:
    launcher = default_launcher(name, fake_gpus=3)
    assert isinstance(launcher, Launcher) and launcher.name == name
    capacity = launcher.capacity()
    assert capacity and capacity.nodes[0].gpus == (0, 1, 2)


def test_an_unknown_name_is_answered_with_those_known() -> None:
    with pytest.raises(ConfigError, match="slrum") as caught:
        default_launcher("slrum")
    assert caught.value.hint and "process" in caught.value.hint


def test_importing_the_registry_imports_no_launcher() -> None:
    code = "import sys, openpaisdk.launchers; "
    code += "print([name for name in sys.modules if name.startswith('openpaisdk.launchers.')])"
    assert (
        subprocess.check_output([sys.executable, "-c", code], text=True)
        == "['openpaisdk.launchers.contract']\n"
    )


def test_gpus_are_what_nvidia_smi_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_gpus() == ()
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 0; echo 1; echo 3\n")
    program.chmod(0o755)
    assert find_gpus() == (0, 1, 3)
    program.write_text("#!/bin/sh\necho 'driver mismatch'; exit 9\n")
    assert find_gpus() == ()
    assert find_gpus(2) == (0, 1)
    assert parse_indexes("0\nWARNING: x\n 1\n") == (0, 1)


def test_this_machine_has_something_to_give() -> None:
    [node] = this_machine(0).nodes
    assert node.cpu >= 1 and node.memory_mb > 100 and node.gpus == ()


@pytest.mark.parametrize("use_pidfd", [True, False])
def test_ends_are_noticed_once(use_pidfd: bool) -> None:
    async def story() -> None:
        watch, ended = ExitWatch(use_pidfd=use_pidfd), asyncio.Event()
        child = subprocess.Popen(["sleep", "0.05"])
        watch.add(child.pid, ended.set)
        await asyncio.wait_for(ended.wait(), 10)
        assert not is_running(child.pid)
        assert reap(child.pid) == 0 and reap(child.pid) is None
        child.returncode = 0
        again = asyncio.Event()
        watch.add(child.pid, again.set)
        await asyncio.wait_for(again.wait(), 10)
        watch.close()

    asyncio.run(story())


def test_a_closed_watch_leaves_the_process_alone() -> None:
    async def story() -> None:
        for use_pidfd in (True, False):
            watch = ExitWatch(use_pidfd=use_pidfd)
            with subprocess.Popen(["sleep", "60"]) as child:
                watch.add(child.pid, lambda: pytest.fail("it had not ended"))
                watch.close()
                assert is_running(child.pid)
                child.kill()

    asyncio.run(story())


def test_processes_are_told_apart_by_their_start() -> None:
    assert start_ticks(os.getpid()) == start_ticks(os.getpid()) is not None
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert start_ticks(child.pid) is None
    assert boot_id() == boot_id()


def test_records_of_a_folder(tmp_path: Path) -> None:
    folder = TaskFolder(str(tmp_path / "task"))
    assert folder.intent() is None and folder.claim() is None and folder.recorded_exit() is None
    folder.prepare({})
    size = os.stat(folder.file("exit")).st_size
    assert folder.recorded_exit() is None and folder.started_at() is None
    assert folder.forbid() and not folder.forbid()
    assert folder.claim() == Claim()
    folder.record_exit(Exit(code=137, oom=True))
    found = folder.recorded_exit()
    assert found and (found.code, found.signal, found.oom) == (137, 9, True)
    assert os.stat(folder.file("exit")).st_size == size


@pytest.mark.parametrize("text", ["", "x 0", "3", "3 0 0", "-1 0", "\0" * 32])
def test_a_torn_exit_record_is_no_exit(tmp_path: Path, text: str) -> None:
    folder = TaskFolder(str(tmp_path))
    Path(folder.file("exit")).write_text(text)
    assert folder.recorded_exit() is None


def test_torn_json_records_are_absent(tmp_path: Path) -> None:
    folder = TaskFolder(str(tmp_path))
    for text in ("", '{"pid"', "[]", '{"pid": "x"}'):
        for name in ("intent.json", "started.json"):
            Path(folder.file(name)).write_text(text)
        assert folder.intent() is None and folder.claim() is None
