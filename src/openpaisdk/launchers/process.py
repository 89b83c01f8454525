"""Tasks as processes of this machine: each in its own session, folder and, where possible, cgroup."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from openpaisdk.launchers import limits, tree
from openpaisdk.launchers.attempts import Attempt, FolderLauncher, Slices, all_ended
from openpaisdk.launchers.contract import Capacity, ExecPlan, Exit, TaskSpec
from openpaisdk.launchers.folder import Intent, exit_from_code
from openpaisdk.launchers.machine import this_machine
from openpaisdk.launchers.watch import reap, start_ticks
from openpaisdk.launchers.wrapper import (
    MARKER,
    as_bytes,
    enter_argv,
    inherited_environment,
    render_env,
    render_wrapper,
    task_environment,
)

SHELL = "/bin/sh"
SWEEP_SECONDS = 0.5
STUCK_ROUNDS = 60
WRAPPER_ROUNDS = 8
_NOWHERE = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
_DEFAULT_SIGNALS = sorted(
    {
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGCHLD,
    }
)


class ProcessLauncher(FolderLauncher):
    """Needs no root, no container engine and no daemon; says in the job's events which limits hold."""

    name = "process"

    def __init__(
        self,
        *,
        fake_gpus: int | None = None,
        find_limits: Callable[[], limits.Limits] = limits.find_limits,
    ) -> None:
        super().__init__()
        self._fake_gpus = fake_gpus
        self._find_limits = find_limits
        self._limits: limits.Limits | None = None
        self._environment = inherited_environment(os.environ)
        self._strays: dict[str, int] = {}
        self._strays_timer: asyncio.TimerHandle | None = None

    def capacity(self) -> Capacity:
        return this_machine(self._fake_gpus)

    def exec_command(self, handle: str, command: Sequence[str], *, tty: bool = False) -> ExecPlan:
        intent = self._running_intent(handle)
        folder = self._folder(handle).path
        argv = enter_argv(folder, intent.workdir, command, cgroups=intent.cgroups)
        return ExecPlan(argv, self._environment | {MARKER: folder}, intent.workdir)

    async def kill(self, handles: Iterable[str], *, grace: float) -> None:
        wanted = list(handles)
        self.observe(wanted)
        attempts = [a for handle in wanted if (a := self._attempts.get(handle)) and a.running]
        for attempt in attempts:
            attempt.folder.ask_to_stop()
        self._signal(attempts, signal.SIGTERM)
        await all_ended(attempts, grace)
        pause = 0.02
        for round_number in range(STUCK_ROUNDS):
            attempts = [attempt for attempt in attempts if attempt.running]
            if not attempts:
                break
            # The wrapper is spared at first: it is about to record the exit.
            self._signal(attempts, signal.SIGKILL, wrapper=round_number >= WRAPPER_ROUNDS)
            await all_ended(attempts, pause)
            pause = min(pause * 1.5, 0.5)
        for attempt in attempts:
            self._tell(
                attempt.intent.key,
                "Warning",
                "KillFailed",
                f"process {attempt.pid} was sent SIGKILL and does not end; it may be stuck in the kernel",
            )
        self._sweep_strays()
        if self._background:
            await asyncio.wait(self._background)

    async def close(self) -> None:
        self._sweep_strays()
        await super().close()

    def _machine_limits(self) -> limits.Limits:
        if self._limits is None:
            self._limits = self._find_limits()
            limits.remove_stale(self._limits)
        return self._limits

    def _intent(self, spec: TaskSpec) -> Intent:
        means = self._machine_limits()
        cgroups: list[str] = []
        if means.memory:
            try:
                cgroups = means.make(limits.name_of(spec.folder), cpu=spec.cpu, memory_mb=spec.memory_mb)
            except OSError:
                self._limits = limits.Limits("rlimit")
        workdir = spec.workdir or f"{spec.folder}/work"
        return Intent(key=spec.key, launcher=self.name, workdir=workdir, cgroups=cgroups, image=spec.image)

    def _files(self, spec: TaskSpec, intent: Intent) -> dict[str, bytes]:
        env = task_environment(
            spec.host_env | spec.env, folder=spec.folder, workdir=intent.workdir, gpus=spec.gpus
        )
        means = self._machine_limits()
        wrapper = render_wrapper(
            spec.folder,
            intent.workdir,
            cgroups=intent.cgroups,
            data_limit_kb=means.data_limit_kb(memory_mb=spec.memory_mb, gpus=len(spec.gpus)),
            oom_counters=limits.oom_counters(intent.cgroups),
        )
        return {
            "run.sh": wrapper,
            "env.sh": render_env(env, spec.prepend),
            "script.sh": as_bytes(spec.script),
        }

    async def _start(self, fresh: Sequence[tuple[Attempt, TaskSpec]]) -> None:
        pause = Slices()
        for attempt, spec in fresh:
            attempt.pid = spawn(spec.folder, self._environment | {MARKER: spec.folder})
            self._follow(attempt)
            await pause()
        if fresh:
            self._explain([spec for _, spec in fresh])

    def _explain(self, specs: Sequence[TaskSpec]) -> None:
        """Once per gang: tasks of a job have much the same to say."""
        spec = max(specs, key=lambda one: len(one.gpus))
        reason, message = self._machine_limits().describe(
            cpu=spec.cpu, memory_mb=spec.memory_mb, gpus=len(spec.gpus)
        )
        self._tell(spec.key, "Normal", reason, message)
        images = sorted({spec.image for spec in specs if spec.image})
        if images:
            self._tell(
                specs[0].key,
                "Warning",
                "ImageNotUsed",
                f"image {', '.join(images)} was not used: the tasks run as processes of this machine, with "
                "its programs and libraries (for the image: podman or docker, and the launcher `auto`)",
            )

    def _locate(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        unrecorded = []
        for attempt in attempts:
            claim = attempt.folder.claim()
            if claim is None:
                unrecorded.append(attempt)
            elif claim.pid and self._claimed_this_boot(attempt) and start_ticks(claim.pid) == claim.ticks:
                attempt.pid = claim.pid
        wrappers = tree.find_wrappers(attempt.folder.path for attempt in unrecorded)
        for attempt in unrecorded:
            attempt.pid = wrappers.get(attempt.folder.path, 0)
        return []

    def _finish(self, attempt: Attempt) -> None:
        # Before the wrapper is reaped, while nobody else can have its process id: the end of the script
        # ends the task, as it does in a container.
        tree.send_group(attempt.pid, signal.SIGKILL)
        code = reap(attempt.pid)
        found = attempt.folder.recorded_exit()
        if found is None:
            attempt.folder.forbid()
            claim = attempt.folder.claim()
            if claim and claim.pid not in (0, attempt.pid):
                # A wrapper of an earlier launch came first; ours ended without running anything.
                attempt.pid, code = 0, None
                self._locate([attempt])
                if attempt.pid:
                    self._follow(attempt)
                    return
                found = attempt.folder.recorded_exit()
        if found is None and code is not None:
            found = exit_from_code(code, oom=_killed_for_memory(attempt.intent.cgroups), at=time.time())
            attempt.folder.record_exit(found)
        if self._leftovers(attempt):
            self._later(self._empty(attempt, found))
        else:
            self._close(attempt, found)

    def _leftovers(self, attempt: Attempt) -> set[int]:
        left = limits.members(attempt.intent.cgroups)
        tree.send(left, signal.SIGKILL)
        return left

    async def _empty(self, attempt: Attempt, found: Exit | None) -> None:
        """Others get the attempt's resources only when nothing of it holds them any more."""
        for _ in range(STUCK_ROUNDS):
            await asyncio.sleep(0.02)
            if not self._leftovers(attempt):
                break
        self._close(attempt, found)

    def _close(self, attempt: Attempt, found: Exit | None) -> None:
        self._clear(attempt)
        if found is None:
            self._sweep_strays()
        self._conclude(attempt, found)

    def _discard(self, intent: Intent) -> None:
        limits.remove(intent.cgroups)

    def _clear(self, attempt: Attempt) -> None:
        if attempt.intent.cgroups:
            if not limits.remove(attempt.intent.cgroups):
                tree.send(limits.members(attempt.intent.cgroups), signal.SIGKILL)
                self._later(self._remove_later(attempt.intent.cgroups))
            return
        self._strays[attempt.folder.path] = attempt.pid
        if attempt.observation and attempt.observation.state == "lost":
            # It will be run again elsewhere: what is left of it must not go on beside that.
            self._sweep_strays()
        elif self._strays_timer is None:
            self._strays_timer = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep_strays)

    async def _remove_later(self, cgroups: Sequence[str]) -> None:
        for _ in range(STUCK_ROUNDS):
            await asyncio.sleep(0.05)
            tree.send(limits.members(cgroups), signal.SIGKILL)
            if limits.remove(cgroups):
                return

    def _sweep_strays(self) -> None:
        """Without cgroups, processes that left the group are found by a look at all processes: one for
        all tasks that ended lately."""
        if self._strays_timer is not None:
            self._strays_timer.cancel()
            self._strays_timer = None
        folders, self._strays = self._strays, {}
        for _ in range(3):
            found = set().union(*tree.find_by_marker(folders, sessions={}).values()) if folders else set()
            if not found:
                return
            tree.send(found, signal.SIGKILL)

    def _signal(self, attempts: Sequence[Attempt], number: signal.Signals, *, wrapper: bool = False) -> None:
        scattered = [attempt for attempt in attempts if not attempt.intent.cgroups]
        sessions = {attempt.pid: attempt.folder.path for attempt in scattered}
        marked = tree.find_by_marker(sessions.values(), sessions=sessions) if scattered else {}
        for attempt in attempts:
            found = marked.get(attempt.folder.path) or limits.members(attempt.intent.cgroups)
            if number == signal.SIGTERM:
                # The wrapper is in the group and shrugs this off; one that has not come so far ends here.
                outside = {pid for pid in found if _group_of(pid) != attempt.pid}
                tree.send_group(attempt.pid, number)
                tree.send(outside, number)
            else:
                tree.send(found if wrapper else found - {attempt.pid}, number)
                if wrapper:
                    tree.send([attempt.pid], number)

    async def _release(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            if not limits.remove(attempt.intent.cgroups):
                await self._remove_later(attempt.intent.cgroups)


def spawn(folder: str, environment: dict[str, str]) -> int:
    """Start the wrapper in a session of its own and with no ties to this process; its process id."""
    argv = [SHELL, f"{folder}/run.sh"]
    try:
        return os.posix_spawn(
            SHELL,
            argv,
            environment,
            file_actions=_NOWHERE,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    except NotImplementedError:
        return _spawn_slowly(argv, environment)


def _spawn_slowly(argv: list[str], environment: dict[str, str]) -> int:
    """Where posix_spawn cannot make a session (macOS)."""
    import subprocess

    child = subprocess.Popen(
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # Reaping is the watch's business, not the destructor's.
    child.returncode = 0
    return child.pid


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise
        return 0


def _killed_for_memory(cgroups: Sequence[str]) -> bool:
    for path in limits.oom_counters(cgroups):
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            continue
        if any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines):
            return True
    return False
