"""Tasks as containers: the same folder and the same sh wrapper as processes, inside an image."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from openpaisdk.errors import UnavailableError
from openpaisdk.launchers.attempts import Attempt, FolderLauncher, all_ended
from openpaisdk.launchers.contract import (
    CONTAINER_CREATION_FAILED,
    CONTAINER_SHELL_MISSING,
    CONTAINER_SHELL_REFUSED,
    IMAGE_MISSING,
    Capacity,
    ExecPlan,
    LaunchError,
    TaskSpec,
)
from openpaisdk.launchers.engine import (
    Adaptation,
    Answer,
    ContainerState,
    Engine,
    adapt,
    find_engine,
    run_argv,
)
from openpaisdk.launchers.folder import Intent, exit_from_code
from openpaisdk.launchers.machine import this_machine
from openpaisdk.launchers.wrapper import (
    CONTAINER_OOM_COUNTERS,
    as_bytes,
    enter_argv,
    render_env,
    render_wrapper,
    task_environment,
)

AT_ONCE = 4
PROGRESS_SECONDS = 5.0
ASKED = 5
NO_SUCH_IMAGE = ("manifest unknown", "not found", "denied", "unauthorized", "invalid reference", "not known")


class ContainerLauncher(FolderLauncher):
    """Needs podman or docker. Containers are started in the background, so they too outlive the server."""

    name = "container"

    def __init__(
        self,
        *,
        engine: str | None = None,
        fake_gpus: int | None = None,
        default_image: str | None = None,
        find: Callable[[str | None], Engine | None] = find_engine,
    ) -> None:
        super().__init__()
        self.wanted = engine
        self._find = find
        self._engine: Engine | None = None
        self._fake_gpus = fake_gpus
        self._default_image = default_image
        self._adaptation = Adaptation()
        self._pulls: dict[str, asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def capacity(self) -> Capacity:
        return this_machine(self._fake_gpus)

    def exec_command(self, handle: str, command: Sequence[str], *, tty: bool = False) -> ExecPlan:
        intent = self._running_intent(handle)
        engine = self.engine()
        argv = [engine.program, "exec", "--interactive", *(["--tty"] if tty else []), str(intent.container)]
        argv += enter_argv(self._folder(handle).path, intent.workdir, command)
        return ExecPlan(argv, engine.environment, None)

    async def kill(self, handles: Iterable[str], *, grace: float) -> None:
        wanted = list(handles)
        self.observe(wanted)
        attempts = [a for handle in wanted if (a := self._attempts.get(handle)) and a.running]
        for attempt in attempts:
            attempt.folder.ask_to_stop()
        if grace > 0:
            # All but the wrapper, which is the container's process 1 and records the exit.
            ask = ["/bin/sh", "-c", "kill -TERM -1"]
            names = [str(attempt.intent.container) for attempt in attempts]
            await asyncio.gather(*(self._call("exec", name, *ask) for name in names))
            await all_ended(attempts, grace)
        attempts = [attempt for attempt in attempts if attempt.running]
        if attempts:
            await self._call("kill", *(str(attempt.intent.container) for attempt in attempts))
            await all_ended(attempts, 20.0)
        if self._background:
            await asyncio.wait(self._background)

    def engine(self) -> Engine:
        """The engine in use; found, with a short wait, the first time."""
        if self._engine is None:
            self._engine = self._find(self.wanted)
        if self._engine is None:
            raise UnavailableError(
                f"no container engine answers (looked for {self.wanted or 'podman and docker'})",
                hint="install podman or start docker, or use the launcher `process`",
            )
        return self._engine

    async def _call(self, *arguments: str, timeout: float | None = 60.0, cwd: str | None = None) -> Answer:
        async with self._slots:
            return await self.engine().call(*arguments, timeout=timeout, cwd=cwd)

    async def _before(self, gang: Sequence[TaskSpec]) -> None:
        if self._engine is None:
            self._engine = await asyncio.to_thread(self._find, self.wanted)
        try:
            self.engine()
        except UnavailableError as error:
            raise LaunchError(error.message, task_code=CONTAINER_CREATION_FAILED, hint=error.hint) from error
        for spec in gang:
            paths = [spec.folder, *(path for host, inside, _ in spec.mounts for path in (host, inside))]
            if any(":" in path for path in paths):
                raise LaunchError(
                    f"task {spec.key}: a folder with a colon in its name cannot be mounted", key=spec.key
                )
        for spec in {self._image(spec): spec for spec in gang}.values():
            image = self._image(spec)
            async with self._pulls.setdefault(image, asyncio.Lock()):
                if not await self.engine().has_image(image):
                    await self._pull(image, spec)

    def _image(self, spec: TaskSpec) -> str:
        image = spec.image or self._default_image
        if image is None:
            raise LaunchError(
                f"task {spec.key}: it names no container image",
                task_code=IMAGE_MISSING,
                key=spec.key,
                hint="give the job an image, or use the launcher `auto` to run it as a process",
            )
        return image

    async def _pull(self, image: str, spec: TaskSpec) -> None:
        began = said = time.monotonic()

        def progress(line: str) -> None:
            nonlocal said
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                self._tell(spec.key, "Normal", "PullProgress", f"image {image}: {line[-200:]}")

        self._tell(spec.key, "Normal", "Pulling", f"image {image} is being pulled")
        answer = await self.engine().pull(image, spec.auth, progress)
        if answer.code != 0:
            reason = answer.err.strip().rpartition("\n")[2]
            missing = any(words in reason.lower() for words in NO_SUCH_IMAGE)
            raise LaunchError(
                f"image {image} cannot be pulled: {reason}",
                task_code=IMAGE_MISSING if missing else CONTAINER_CREATION_FAILED,
                key=spec.key,
                hint="check the image's name and, for a private registry, the `auth` of the docker image",
            )
        seconds = time.monotonic() - began
        self._tell(spec.key, "Normal", "Pulled", f"image {image} was pulled in {seconds:.0f} s")

    def _intent(self, spec: TaskSpec) -> Intent:
        digest = hashlib.sha256(spec.folder.encode()).hexdigest()[:12]
        return Intent(
            key=spec.key,
            launcher=self.name,
            workdir=spec.workdir or f"{spec.folder}/work",
            container=f"opai-{spec.key[:100]}-{digest}",
            image=self._image(spec),
        )

    def _files(self, spec: TaskSpec, intent: Intent) -> dict[str, bytes]:
        # Devices that are handed in are counted from 0 inside.
        gpus = spec.gpus if self._fake_gpus is not None else range(len(spec.gpus))
        env = task_environment(spec.env, folder=spec.folder, workdir=intent.workdir, gpus=gpus)
        return {
            "run.sh": render_wrapper(spec.folder, intent.workdir, oom_counters=CONTAINER_OOM_COUNTERS),
            "env.sh": render_env(env, spec.prepend),
            "script.sh": as_bytes(spec.script),
        }

    async def _start(self, fresh: Sequence[tuple[Attempt, TaskSpec]]) -> None:
        if not fresh:
            return
        starts = [asyncio.ensure_future(self._run(attempt, spec)) for attempt, spec in fresh]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
        names = [str(attempt.intent.container) for attempt, _ in fresh]
        states = await self._states(names)
        for (attempt, _), name in zip(fresh, names, strict=True):
            state = states.get(name)
            if state and state.pid:
                attempt.pid = state.pid
                self._follow(attempt)
            else:
                asyncio.get_running_loop().call_soon(self._finish, attempt)
        self._explain(fresh[0][1])

    async def _run(self, attempt: Attempt, spec: TaskSpec) -> None:
        """Start one container; learns from a refusal what this machine needs, and tries again."""
        engine, name = self.engine(), str(attempt.intent.container)
        while True:
            tried = self._adaptation
            argv = run_argv(
                engine.kind,
                spec,
                name=name,
                image=self._image(spec),
                workdir=attempt.intent.workdir,
                adaptation=tried,
                real_gpus=self._fake_gpus is None,
                environ=os.environ,
            )
            # podman's monitor leaves a file `oom` where it was started when a container runs out of memory.
            answer = await self._call(*argv, timeout=300.0, cwd=spec.folder)
            if answer.code == 0:
                return
            state = (await self._states([name])).get(name)
            # A name in use: made by a server that was killed before it started it, or had just done so.
            taken = state is not None and "already in use" in answer.err
            if (
                state
                and taken
                and (state.pid or (await self._call("start", name, cwd=spec.folder)).code == 0)
            ):
                return
            await self._call("rm", "--force", "--volumes", name)
            better = adapt(tried, answer.err, has_runc=shutil.which("runc") is not None)
            if tried == self._adaptation and better is None:
                raise _refused(spec, engine, answer)
            if better is not None and tried == self._adaptation:
                self._adaptation = better

    async def _states(self, names: Sequence[str]) -> dict[str, ContainerState]:
        try:
            return await asyncio.to_thread(self.engine().inspect, names)
        except UnavailableError as error:
            raise LaunchError(error.message, task_code=CONTAINER_CREATION_FAILED) from error

    def _explain(self, spec: TaskSpec) -> None:
        limits = f"memory {spec.memory_mb} MB and {spec.cpu} CPU{'' if spec.cpu == 1 else 's'}"
        kind = self.engine().kind
        if self._adaptation.limits:
            self._tell(spec.key, "Normal", "LimitsApplied", f"{limits}, enforced per task by {kind}")
        else:
            message = f"{limits} are not enforced: {kind} has no control groups to use on this machine"
            self._tell(spec.key, "Normal", "LimitsNotEnforced", message)

    def _locate(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        here = [attempt for attempt in attempts if self._claimed_this_boot(attempt)]
        try:
            states = (
                self.engine().inspect([str(attempt.intent.container) for attempt in here]) if here else {}
            )
        except UnavailableError:
            return [attempt for attempt in here if attempt.folder.recorded_exit() is None]
        for attempt in here:
            state = states.get(str(attempt.intent.container))
            if state is None:
                continue
            if state.pid:
                attempt.pid = state.pid
                continue
            claim = attempt.folder.claim()
            ran = claim is not None and claim.pid != 0 and state.status in ("exited", "stopped", "dead")
            if ran and attempt.folder.recorded_exit() is None:
                found = exit_from_code(state.exit_code, oom=state.oom, at=time.time())
                attempt.folder.record_exit(found)
        return []

    def _finish(self, attempt: Attempt) -> None:
        self._later(self._learn(attempt))

    async def _learn(self, attempt: Attempt) -> None:
        found = attempt.folder.recorded_exit()
        for _ in range(ASKED):
            if found is not None:
                break
            # The wrapper did not come to it: the engine knows, as soon as its own watcher has noticed.
            await self._call("wait", str(attempt.intent.container), timeout=30.0)
            attempt.pid = 0
            if not await asyncio.to_thread(self._locate, [attempt]):
                found = attempt.folder.recorded_exit()
                break
            await asyncio.sleep(1.0)
        self._conclude(attempt, found)
        await self._remove(attempt)

    def _clear(self, attempt: Attempt) -> None:
        self._later(self._remove(attempt))

    async def _remove(self, attempt: Attempt) -> None:
        with suppress(UnavailableError):
            await self._call("rm", "--force", "--volumes", str(attempt.intent.container))

    async def _release(self, attempts: Sequence[Attempt]) -> None:
        if attempts:
            await self._call("rm", "--force", "--volumes", *(str(one.intent.container) for one in attempts))


def _refused(spec: TaskSpec, engine: Engine, answer: Answer) -> LaunchError:
    codes = {126: CONTAINER_SHELL_REFUSED, 127: CONTAINER_SHELL_MISSING}
    reason = answer.err.strip().rpartition("\n")[2].removeprefix("Error: ")
    return LaunchError(
        f"task {spec.key}: {engine.kind} cannot start image {spec.image}: {reason}",
        task_code=codes.get(answer.code, CONTAINER_CREATION_FAILED),
        key=spec.key,
        hint="the image needs /bin/sh; flags for the engine can be given in OPAI_CONTAINER_FLAGS",
    )
