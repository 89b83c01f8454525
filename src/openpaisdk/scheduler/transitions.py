"""The states of jobs and tasks, which moves are legal between them, and how they are shown (contract B.9)."""

from __future__ import annotations

CREATION_PENDING = "AttemptCreationPending"
CREATION_REQUESTED = "AttemptCreationRequested"
PREPARING = "AttemptPreparing"
RUNNING = "AttemptRunning"
DELETION_PENDING = "AttemptDeletionPending"
DELETION_REQUESTED = "AttemptDeletionRequested"
DELETING = "AttemptDeleting"
ATTEMPT_COMPLETED = "AttemptCompleted"
COMPLETED = "Completed"

# AttemptDeletionPending and AttemptDeleting are only shown: asking for a kill is one step here.
MOVES: dict[str, frozenset[str]] = {
    CREATION_PENDING: frozenset({CREATION_REQUESTED, COMPLETED}),
    CREATION_REQUESTED: frozenset({PREPARING, RUNNING, DELETION_REQUESTED, ATTEMPT_COMPLETED}),
    PREPARING: frozenset({RUNNING, DELETION_REQUESTED, ATTEMPT_COMPLETED}),
    RUNNING: frozenset({DELETION_REQUESTED, ATTEMPT_COMPLETED}),
    DELETION_REQUESTED: frozenset({ATTEMPT_COMPLETED}),
    ATTEMPT_COMPLETED: frozenset({CREATION_PENDING, COMPLETED}),
    COMPLETED: frozenset(),
}
STOP_CODES = frozenset({-210, -220})
_HISTORY_KEPT = 24
_WAITING = frozenset({CREATION_PENDING, CREATION_REQUESTED, PREPARING})
_DELETING = frozenset({DELETION_PENDING, DELETION_REQUESTED, DELETING})


class IllegalMove(Exception):
    """The scheduler tried a move that the table does not allow: a defect of ours, told with the history."""

    def __init__(self, name: str, sub_state: str, wanted: str, history: list[tuple[float, str]]) -> None:
        told = ", ".join(f"{state} at {at:.3f}" for at, state in history) or "nothing yet"
        super().__init__(f"{name}: no move from {sub_state} to {wanted}; so far: {told}")
        self.history = history


class Stateful:
    """Something with a sub state that moves only as the table allows, and remembers its last moves."""

    __slots__ = ("history", "sub_state")

    def __init__(self, sub_state: str = CREATION_PENDING) -> None:
        self.sub_state = sub_state
        self.history: list[tuple[float, str]] = []

    def described(self) -> str:
        """How an error names it."""
        raise NotImplementedError

    def move(self, wanted: str, at: float) -> None:
        """Go to `wanted` or raise IllegalMove."""
        if wanted not in MOVES[self.sub_state]:
            raise IllegalMove(self.described(), self.sub_state, wanted, self.history)
        self.sub_state = wanted
        self.history.append((at, wanted))
        if len(self.history) > _HISTORY_KEPT:
            del self.history[0]


def shown_states(sub_state: str, code: int | None) -> tuple[str, str]:
    """`(state, attemptState)` as the REST API shows them, for a job or a task."""
    stopped = code in STOP_CODES
    if sub_state in _WAITING:
        return "WAITING", "WAITING"
    if sub_state == RUNNING:
        return "RUNNING", "RUNNING"
    if sub_state in _DELETING:
        return ("STOPPING", "STOPPING") if stopped else ("RUNNING", "RUNNING")
    outcome = "STOPPED" if stopped else "SUCCEEDED" if code == 0 else "FAILED"
    if sub_state == ATTEMPT_COMPLETED:
        return "STOPPING" if stopped else "RUNNING", outcome
    if sub_state == COMPLETED:
        return outcome, outcome
    return "UNKNOWN", "UNKNOWN"
