from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openpaisdk.scheduler import Request, RoleInfo
from openpaisdk.scheduler.policy import decide_retry, pause, triggers


def decide(code, *, fancy=True, maximum=0, counted=0, quick_ends=0):
    return decide_retry(
        code, fancy=fancy, maximum=maximum, counted=counted, random=Random(7), quick_ends=quick_ends
    )


@pytest.mark.parametrize("code", [-210, -220, -230])
@pytest.mark.parametrize("maximum", [-2, -1, 5])
def test_what_was_stopped_is_never_tried_again(code, maximum):
    assert not decide(code, maximum=maximum).again


@pytest.mark.parametrize("code", [-101, -1000, -1001, -1003, 130, 137, 143, 223, 253])
def test_transient_failures_are_free_and_at_once(code):
    assert decide(code) == (True, True, 0.0)


@pytest.mark.parametrize("code", [-200, -1200, 132, 220, 231, 254])
def test_permanent_failures_end_it(code):
    assert not decide(code, maximum=9).again


@pytest.mark.parametrize("code", [1, 3, 255, 256, 300, -300, -9999])
def test_unknown_failures_are_counted(code):
    assert decide(code, maximum=2, counted=1) == (True, False, 0.0)
    assert not decide(code, maximum=2, counted=2).again


@given(st.integers(0, 10_000))
def test_a_conflict_waits_between_one_and_fifteen_minutes(seed):
    retry = decide_retry(251, fancy=True, maximum=0, counted=0, random=Random(seed))
    assert retry.again and retry.free and 60 <= retry.delay <= 900


def test_success_is_tried_again_only_where_always_is_meant():
    assert not decide(0, maximum=5).again
    assert not decide(0, maximum=-1).again
    assert decide(0, maximum=-2).again
    assert decide(255, maximum=-1, counted=99).again


def test_without_the_fancy_policy_every_failure_is_counted():
    assert decide(137, fancy=False, maximum=1) == (True, False, 0.0)
    assert not decide(137, fancy=False, maximum=0).again


def test_what_ends_at_once_again_and_again_is_slowed_down():
    pauses = [pause(n) for n in range(12)]
    assert pauses[:3] == [0.0, 0.0, 0.0] and pauses == sorted(pauses) and pauses[-1] == 60.0
    assert decide(137, quick_ends=4).delay == 2.0


@pytest.mark.parametrize(
    ("min_failed", "min_succeeded", "code", "succeeded", "failed", "decided"),
    [
        (1, 3, 255, 0, 1, True),
        (2, 3, 255, 0, 1, False),
        (2, 3, 255, 0, 2, True),
        (-1, 3, 255, 0, 3, False),
        (1, 3, 0, 2, 0, False),
        (1, 3, 0, 3, 0, True),
        (1, -1, 0, 3, 0, False),
        (2, 1, 0, 1, 1, True),
    ],
)
def test_which_task_decides_an_attempt(min_failed, min_succeeded, code, succeeded, failed, decided):
    role = RoleInfo("worker", 3, Request(1, 1), min_failed, min_succeeded)
    assert triggers(role, code, succeeded=succeeded, failed=failed) is decided
