"""Counting requests in windows."""

from __future__ import annotations

import pytest

from openpaisdk.errors import ConfigError
from openpaisdk.server.ratelimit import RateLimits, Window, windows


def test_a_window_ends() -> None:
    now = [100.0]
    window = Window(2, 60, lambda: now[0])
    assert [window.hit("a")[0] for _ in range(3)] == [True, True, False]
    assert window.hit("b")[0]
    now[0] = 159.9
    assert not window.hit("a")[0]
    now[0] = 160.0
    passes, headers = window.hit("a")
    assert passes
    assert headers == {
        b"x-ratelimit-limit": b"2",
        b"x-ratelimit-remaining": b"1",
        b"x-ratelimit-reset": b"220",
    }


def test_no_limits_and_limits_of_zero_mean_no_windows() -> None:
    assert windows(None) == {}
    assert set(windows(RateLimits())) == {"api", "list", "submit"}
    assert set(windows(RateLimits(list_per_minute=0, submit_per_hour=0))) == {"api"}


@pytest.mark.parametrize("text", ["api", "api=", "api=x", "lists=3", "api=1;list=2"])
def test_limits_that_are_not_understood(text: str) -> None:
    with pytest.raises(ConfigError, match="not understood"):
        RateLimits.parse(text)
