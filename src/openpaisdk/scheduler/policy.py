"""When an attempt is over and whether there is another one: completion and retries (contract F.1, F.2)."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from openpaisdk.protocol import exit_spec

from .model import RoleInfo

STOPPED_BY_USER = -210
ATTEMPT_OVER = -220
TASK_DELETED = -230
NODE_LOST = -1001
PREEMPTED = -1003

NEVER_RETRIED = frozenset({STOPPED_BY_USER, ATTEMPT_OVER, TASK_DELETED})
CONFLICT_DELAY = (60, 900)
LONGEST_DELAY = float(CONFLICT_DELAY[1])
QUICK_END = 10.0
_QUICK_ENDS_FOR_FREE = 3
_LONGEST_PAUSE = 60.0


class Retry(NamedTuple):
    """Whether to try again, whether that is counted, and after how many seconds."""

    again: bool
    free: bool = False
    delay: float = 0.0


NO_RETRY = Retry(False)


def decide_retry(
    code: int, *, fancy: bool, maximum: int, counted: int, random: Random, quick_ends: int = 0
) -> Retry:
    """The rule for job attempts and, separately, task attempts.

    `quick_ends` is how many free retries in a row followed an attempt that lasted less than QUICK_END
    seconds. Beyond a few of them a pause is made, which OpenPAI has not: there a pod takes seconds to
    start, here a task that kills itself would spin.
    """
    if code in NEVER_RETRIED:
        return NO_RETRY
    if fancy and code != 0:
        spec = exit_spec(code)
        behavior = spec.behavior if spec else "UNKNOWN"
        if behavior == "TRANSIENT":
            return Retry(True, True, pause(quick_ends))
        if behavior == "TRANSIENT_CONFLICT":
            return Retry(True, True, float(random.randint(*CONFLICT_DELAY)))
        if behavior == "PERMANENT":
            return NO_RETRY
    if maximum == -2 or (code != 0 and (maximum == -1 or counted < maximum)):
        return Retry(True)
    return NO_RETRY


def pause(quick_ends: int) -> float:
    """Seconds to wait before a free retry: none for the first few, then doubling up to a minute."""
    beyond = quick_ends - _QUICK_ENDS_FOR_FREE
    return 0.0 if beyond < 0 else min(_LONGEST_PAUSE, 2.0 ** min(beyond, 10))


def count_quick_ends(so_far: int, code: int, started_at: float | None, ended_at: float) -> int:
    """How many attempts in a row have now ended quickly; those that gave way to others do not count."""
    if code == PREEMPTED:
        return so_far
    return so_far + 1 if started_at is None or ended_at - started_at < QUICK_END else 0


def triggers(role: RoleInfo, code: int, *, succeeded: int, failed: int) -> bool:
    """Whether a task of `role` that ended with `code` decides its attempt; the counts include that task."""
    if code == 0:
        return 1 <= role.min_succeeded <= succeeded
    return 1 <= role.min_failed <= failed
