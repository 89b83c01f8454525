"""The short form of `scripts/soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.crashes import CrashRun


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    done = CrashRun(tmp_path, jobs=200, kills=20, seed=20261115).run()
    assert done["kills"] == 20
