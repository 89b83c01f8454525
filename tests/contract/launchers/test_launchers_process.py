"""The process launcher keeps the contract, with cgroups and without, with pidfds and without."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from openpaisdk.launchers import Launcher
from openpaisdk.launchers.limits import Limits
from openpaisdk.launchers.process import ProcessLauncher
from openpaisdk.launchers.watch import ExitWatch
from support.launcher_contract import LauncherContract
from support.leftovers import assert_nothing_left


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert_nothing_left(tmp_path)


class TestProcessLauncher(LauncherContract):
    def make(self) -> Launcher:
        return ProcessLauncher()


class TestProcessLauncherWithoutCgroups(LauncherContract):
    def make(self) -> Launcher:
        return ProcessLauncher(find_limits=lambda: Limits("rlimit"))


class TestProcessLauncherWithoutPidfd(LauncherContract):
    @pytest.fixture(autouse=True)
    def _no_pidfd(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(pid: int, flags: int = 0) -> int:
            raise OSError(24, os.strerror(24))

        monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
        assert ExitWatch()

    def make(self) -> Launcher:
        return ProcessLauncher()
