"""Trying again: which failures may pass, how long to wait, and when to give up."""

from __future__ import annotations

import time

from openpaisdk.errors import OpenPAIError, RateLimitedError, UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Found = TypeVar("Found")

FIRST_WAIT = 0.5
LONGEST_WAIT = 10.0


def seconds_from(value: str | None, now: float | None = None) -> float | None:
    """The wait that a `Retry-After` header asks for, given as seconds or as a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def may_pass(error: OpenPAIError) -> bool:
    """Whether the same call may succeed a little later.

    A refused connection, an unknown host or a bad certificate is said at once: waiting only delays the news.
    """
    if isinstance(error, UnavailableError):
        return getattr(error, "reason", "lost") in ("timeout", "lost", "unreachable")
    return False


def wait_before(error: OpenPAIError, attempt: int) -> float:
    """Seconds to wait after the given failed attempt (from 0)."""
    asked = getattr(error, "retry_after", None)
    if asked is not None:
        return float(asked)
    return float(min(FIRST_WAIT * 2**attempt, LONGEST_WAIT))


def call_with_retry(
    call: Callable[[], Found],
    *,
    attempts: int = 3,
    patience: float = 90.0,
    sleep: Callable[[float], Any] = time.sleep,
    notice: Callable[[str], Any] | None = None,
) -> Found:
    """Call until it succeeds or fails for good, at most `attempts` times and `patience` seconds of waiting.

    Only for calls that may be repeated safely.
    """
    waited = 0.0
    attempt = 0
    while True:
        try:
            return call()
        except OpenPAIError as error:
            wait = wait_before(error, attempt)
            attempt += 1
            silent = getattr(error, "reason", "") == "timeout"
            # Whoever did not answer for that long is asked only once more.
            most = min(attempts, 2) if silent else attempts
            if not may_pass(error) or attempt >= most or waited + wait > patience:
                raise
            if notice is not None and (wait >= 2 or silent or isinstance(error, RateLimitedError)):
                notice(f"{error.message}; trying again in {wait:g} s")
        sleep(wait)
        waited += wait
