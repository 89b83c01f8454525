"""Request rate limits: fixed windows in memory, forgotten on restart."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from openpaisdk.errors import ConfigError


class RateLimits(msgspec.Struct, frozen=True):
    """How many requests are allowed; 0 means no limit."""

    api_per_minute: int = 600
    list_per_minute: int = 120
    submit_per_hour: int = 3600

    @classmethod
    def parse(cls, text: str) -> RateLimits | None:
        """Read `off`, `on` or `api=600,list=120,submit=3600`."""
        if text in ("off", ""):
            return None
        names = {"api": "api_per_minute", "list": "list_per_minute", "submit": "submit_per_hour"}
        values: dict[str, int] = {}
        for pair in text.split(",") if text != "on" else ():
            name, _, value = pair.strip().partition("=")
            if name not in names or not value.isdigit():
                raise ConfigError(
                    f"rate limits: {pair!r} is not understood",
                    hint="write off, on, or for example api=600,list=120,submit=3600",
                )
            values[names[name]] = int(value)
        return cls(**values)


class Window:
    """Counts per key, all set back together when the window ends."""

    __slots__ = ("_clock", "_counts", "_ends", "_seconds", "limit")

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clock = clock
        self._ends = clock() + seconds
        self._counts: dict[str, int] = {}

    def hit(self, key: str) -> tuple[bool, dict[bytes, bytes]]:
        """Count one request: whether it may pass, and the headers that tell the client."""
        now = self._clock()
        if now >= self._ends:
            self._counts.clear()
            self._ends = now + self._seconds
        count = self._counts[key] = self._counts.get(key, 0) + 1
        left = max(self.limit - count, 0)
        headers = {
            b"x-ratelimit-limit": b"%d" % self.limit,
            b"x-ratelimit-remaining": b"%d" % left,
            b"x-ratelimit-reset": b"%d" % int(self._ends + 0.999),
        }
        return count <= self.limit, headers


def windows(limits: RateLimits | None, clock: Callable[[], float] = time.time) -> dict[str, Window]:
    """The limiters in force by name: `api` per address, `list` and `submit` per user."""
    if limits is None:
        return {}
    wanted = {
        "api": (limits.api_per_minute, 60.0),
        "list": (limits.list_per_minute, 60.0),
        "submit": (limits.submit_per_hour, 3600.0),
    }
    return {name: Window(limit, seconds, clock) for name, (limit, seconds) in wanted.items() if limit}
