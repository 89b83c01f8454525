"""Small words for numbers."""

from __future__ import annotations

import pytest

from openpaisdk.commands import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.04, "0.0 s"),
        (4.2, "4.2 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (7200, "2 h"),
        (7800, "2 h 10 min"),
        (90000, "1 d 1 h"),
        (86400, "1 d"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert wording.duration(seconds) == text


def test_ago() -> None:
    assert wording.ago(None) == ""
    assert wording.ago(1000_000, 1000.2) == "now"
    assert wording.ago(1000_000, 1003.7) == "3 s ago"
    assert wording.ago(1000_000, 1080) == "80 s ago"
    assert wording.ago(1000_000, 1185) == "3 min ago"
    assert wording.ago(1000_000, 1000 + 95 * 60) == "95 min ago"
    assert wording.ago(1000_000, 1000 + 47 * 3600) == "47 h ago"
    assert wording.ago(1000_000, 1000 + 75 * 3600) == "3 d ago"


def test_amounts() -> None:
    assert wording.memory(512) == "512 MB"
    assert wording.memory(24576) == "24 GB"
    assert wording.memory(None) == ""
    assert wording.file_size(12) == "12 B"
    assert wording.file_size(12_345) == "12.3 kB"
    assert wording.file_size(3e12) == "3e+03 GB"
    assert wording.number(1, "GPU") == "1 GPU"
    assert wording.number(0, "GPU") == "0 GPUs"
    assert wording.number(2, "try", "tries") == "2 tries"
    assert (
        wording.capacity({"capacity": {"cpu": 2, "memory_mb": 24576, "gpus": [0]}}) == "2 CPUs, 24 GB, 1 GPU"
    )
    assert wording.capacity({}) == ""


def test_outcomes() -> None:
    assert wording.outcome_code([]) == 0
    assert wording.outcome_code(["SUCCEEDED"]) == 0
    assert wording.outcome_code(["STOPPED", "SUCCEEDED"]) == 11
    assert wording.outcome_code(["STOPPED", "FAILED"]) == 10
    assert wording.outcome_code(["UNKNOWN"]) == 10
    assert wording.shown_state({"state": "RUNNING", "executionType": "STOP"}) == "stopping"
    assert wording.shown_state({"state": "STOPPED", "executionType": "STOP"}) == "stopped"
    assert wording.shown_state({}) == "unknown"
    assert wording.ran_for({"launchedTime": None}) is None
    assert wording.ran_for({"launchedTime": 1000}, 3.0) == 2.0
