"""The fake launcher keeps the contract."""

from __future__ import annotations

import pytest

from fakes.launcher import FakeLauncher, FakeWorld
from openpaisdk.launchers import Launcher
from support.launcher_contract import LauncherContract


class TestFakeLauncher(LauncherContract):
    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.world = FakeWorld()

    def make(self) -> Launcher:
        return FakeLauncher(self.world)
