from __future__ import annotations

import pytest

from openpaisdk.scheduler import IllegalMove, shown_states
from openpaisdk.scheduler.transitions import ATTEMPT_COMPLETED, COMPLETED, MOVES, RUNNING, Stateful


class Thing(Stateful):
    def described(self) -> str:
        return "task ann~bert/worker/0"


def test_every_state_can_be_reached_and_only_completed_is_final():
    reached = {target for targets in MOVES.values() for target in targets}
    assert reached == set(MOVES)
    assert [state for state, targets in MOVES.items() if not targets] == [COMPLETED]


def test_an_illegal_move_is_told_with_the_history():
    thing = Thing()
    thing.move("AttemptCreationRequested", 1.0)
    thing.move(RUNNING, 2.5)
    with pytest.raises(IllegalMove) as caught:
        thing.move(COMPLETED, 3.0)
    assert str(caught.value) == (
        "task ann~bert/worker/0: no move from AttemptRunning to Completed; "
        "so far: AttemptCreationRequested at 1.000, AttemptRunning at 2.500"
    )
    assert thing.sub_state == RUNNING


def test_the_history_does_not_grow_for_ever():
    thing = Thing(ATTEMPT_COMPLETED)
    for _ in range(100):
        for state in ("AttemptCreationPending", "AttemptCreationRequested", ATTEMPT_COMPLETED):
            thing.move(state, 0.0)
    assert len(thing.history) < 30


@pytest.mark.parametrize(
    ("sub_state", "code", "shown"),
    [
        ("AttemptCreationPending", None, ("WAITING", "WAITING")),
        ("AttemptCreationRequested", None, ("WAITING", "WAITING")),
        ("AttemptPreparing", None, ("WAITING", "WAITING")),
        ("AttemptRunning", None, ("RUNNING", "RUNNING")),
        ("AttemptDeletionPending", -210, ("STOPPING", "STOPPING")),
        ("AttemptDeletionRequested", -220, ("STOPPING", "STOPPING")),
        ("AttemptDeleting", 255, ("RUNNING", "RUNNING")),
        ("AttemptCompleted", -210, ("STOPPING", "STOPPED")),
        ("AttemptCompleted", 0, ("RUNNING", "SUCCEEDED")),
        ("AttemptCompleted", 255, ("RUNNING", "FAILED")),
        ("Completed", 0, ("SUCCEEDED", "SUCCEEDED")),
        ("Completed", -220, ("STOPPED", "STOPPED")),
        ("Completed", -1001, ("FAILED", "FAILED")),
        ("Elsewhere", None, ("UNKNOWN", "UNKNOWN")),
    ],
)
def test_states_are_shown_as_the_contract_says(sub_state, code, shown):
    assert shown_states(sub_state, code) == shown
