"""The launcher contract: what runs tasks, whatever it runs them with.

A launcher acts and never decides. Every method below is called on the thread of the event loop. A *handle* is
a launcher's name for one task attempt; it stays valid after a server restart, so it is stored as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec

from openpaisdk.errors import OpenPAIError

Stream = Literal["stdout", "stderr"]
State = Literal["running", "ended", "lost"]
OnExit = Callable[[str], None]
OnEvent = Callable[[str, str, str, str], None]

CREATION_FAILED = -310
CREATION_REFUSED = -200
CONTAINER_CREATION_FAILED = -1201
CONTAINER_SHELL_REFUSED = -1202
CONTAINER_SHELL_MISSING = -1203
IMAGE_MISSING = 254


class LaunchError(OpenPAIError):
    """The tasks could not be started."""

    # `task_code` is the exit code (contract, exit spec) that says so for the attempt, `key` the task it
    # is about.

    code = "LaunchError"

    def __init__(
        self,
        message: str | None = None,
        *,
        task_code: int = CREATION_FAILED,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.task_code = task_code
        self.key = key


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One task attempt, ready to run: nothing in it is left to decide.

    `host_env` holds only outside containers. `prepend` goes before what a variable like PYTHONPATH already
    has where the task runs.
    """

    key: str
    folder: str
    script: str
    env: dict[str, str] = {}
    host_env: dict[str, str] = {}
    prepend: dict[str, str] = {}
    cpu: int = 1
    memory_mb: int = 1024
    gpus: tuple[int, ...] = ()
    shm_mb: int = 0
    image: str | None = None
    auth: tuple[str, str, str] | None = None
    workdir: str | None = None
    mounts: tuple[tuple[str, str, bool], ...] = ()


class Exit(msgspec.Struct, frozen=True):
    """How a task ended: `code` as a shell would show it, so 128 + n for signal n."""

    code: int
    signal: int | None = None
    oom: bool = False
    at: float = 0.0


class Observation(msgspec.Struct, frozen=True):
    """What is known of a task. `lost`: it no longer runs and how it ended cannot be learnt."""

    state: State
    exit: Exit | None = None
    started_at: float | None = None


class Node(msgspec.Struct, frozen=True):
    """One machine that tasks can be placed on; `gpus` are the indexes that exist."""

    name: str
    address: str
    cpu: int
    memory_mb: int
    gpus: tuple[int, ...] = ()


class Capacity(msgspec.Struct, frozen=True):
    """All machines of a launcher."""

    nodes: tuple[Node, ...]


class ExecPlan(msgspec.Struct, frozen=True):
    """A command line that opens the environment of a running task. Nothing secret is in `argv`."""

    argv: list[str]
    env: dict[str, str]
    cwd: str | None


@runtime_checkable
class Launcher(Protocol):
    """Runs gangs of tasks that outlive the server which started them."""

    @property
    def name(self) -> str:
        """The word people choose it by."""

    def capacity(self) -> Capacity | None:
        """The resources there are, or None where the engine has its own queue and decides when. May block
        for a moment the first time."""

    async def launch(self, gang: Sequence[TaskSpec]) -> list[str]:
        """Start all tasks or none, and return their handles in order. Idempotent per task: called again,
        also after a crash of the server, it starts nothing that has started. Raises LaunchError, and then
        nothing is left running; cancelling it has the same effect."""

    def observe(self, handles: Iterable[str]) -> dict[str, Observation]:
        """One call for many tasks; a handle seen for the first time is adopted: when it runs, `on_exit`
        will tell its end. A task that was never started is `lost` from then on and cannot start any more.
        Never fails: while an engine does not answer, its tasks count as running."""

    async def kill(self, handles: Iterable[str], *, grace: float) -> None:
        """SIGTERM to every process of each task, SIGKILL after `grace` seconds; returns when nothing is
        left. Already gone is fine. Raises UnavailableError when an engine does not answer."""

    def logs(self, handle: str, stream: Stream, start: int, *, limit: int = 1 << 20) -> bytes:
        """At most `limit` bytes from offset `start`; empty at the end or when there is no log."""

    def log_path(self, handle: str, stream: Stream) -> Path | None:
        """The file that grows, for those who watch it; None where there is none."""

    def exec_command(self, handle: str, command: Sequence[str], *, tty: bool = False) -> ExecPlan:
        """How to run `command` (a login-less shell when empty) in the folder, variables and container of a
        running task. Raises ConflictError when it does not run."""

    def subscribe(self, on_exit: OnExit, on_event: OnEvent) -> None:
        """`on_exit(handle)` once for each task that ends after launch() returned it or observe() called it
        running, and for one that launch() found ended; `on_event(key, type, reason, message)` for what
        people should read in the job's events (type Normal or Warning)."""

    async def forget(self, handles: Iterable[str]) -> None:
        """Delete the files and containers of tasks; one that still runs is killed first. Unknown is
        fine."""

    async def close(self) -> None:
        """Stop watching. Tasks go on."""
