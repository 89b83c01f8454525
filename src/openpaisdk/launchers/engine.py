"""podman or docker: which is there, how it is called, and what a machine needs it to be told."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from openpaisdk.errors import ConfigError, UnavailableError
from openpaisdk.launchers.contract import TaskSpec
from openpaisdk.launchers.wrapper import inherited_environment

ENGINES = ("podman", "docker")
FLAGS_VARIABLE = "OPAI_CONTAINER_FLAGS"
# Where an engine may not raise limits to its defaults, it is told lower ones, the most generous first.
ULIMITS = ({"nofile": 20000, "nproc": 16384}, {"nofile": 1024, "nproc": 1024})
_FORMAT = "{{.Name}} {{.State.Status}} {{.State.Pid}} {{.State.ExitCode}} {{.State.OOMKilled}}"


class Answer(NamedTuple):
    """What one call of the engine gave."""

    code: int
    out: str
    err: str


class ContainerState(NamedTuple):
    """One container as the engine sees it."""

    status: str
    pid: int
    exit_code: int
    oom: bool


class Adaptation(NamedTuple):
    """What this machine needs beyond the usual flags; learnt from the engine's refusals."""

    runtime: str | None = None
    ulimits: int = 0
    limits: bool = True


def adapt(current: Adaptation, refusal: str, *, has_runc: bool) -> Adaptation | None:
    """The next thing to try after the engine refused to start a container, or None when nothing is left."""
    text = refusal.lower()
    if "rlimit" in text and current.ulimits < len(ULIMITS):
        return current._replace(ulimits=current.ulimits + 1)
    if ("crun" in text or "cgroup" in text) and current.runtime is None and has_runc:
        return current._replace(runtime="runc")
    if ("cgroup" in text or "controller" in text) and current.limits:
        return current._replace(limits=False)
    return None


class Engine:
    """One container engine. Every call is a process of its own; nothing is kept open."""

    def __init__(self, program: str, kind: str) -> None:
        self.program = program
        self.kind = kind
        self.environment = inherited_environment(os.environ)

    async def call(
        self,
        *arguments: str,
        timeout: float | None = 60.0,
        on_line: Callable[[str], None] | None = None,
        cwd: str | None = None,
    ) -> Answer:
        """Run the engine and wait. Cancelling, or more than `timeout` seconds, ends it."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            *arguments,
            env=self.environment,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(_outputs(process, on_line), timeout)
            return Answer(await process.wait(), out, err)
        except asyncio.TimeoutError:
            return Answer(124, "", f"{self.kind} {arguments[0]} did not answer within {timeout:.0f} s")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def inspect(self, names: Sequence[str]) -> dict[str, ContainerState]:
        """The state of those containers that exist, in one call; blocks for a moment. Raises
        UnavailableError when the engine fails otherwise than by not knowing a name."""
        if not names:
            return {}
        argv = [self.program, "container", "inspect", "--format", _FORMAT, *names]
        try:
            answer = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            raise UnavailableError(f"{self.kind} does not answer: {error}") from error
        if answer.returncode != 0 and "no such" not in answer.stderr.lower():
            raise UnavailableError(f"{self.kind} cannot tell about containers: {answer.stderr.strip()}")
        return parse_states(answer.stdout)

    async def has_image(self, image: str) -> bool:
        return (await self.call("image", "inspect", "--format", "{{.Id}}", image)).code == 0

    async def pull(
        self, image: str, auth: tuple[str, str, str] | None, on_line: Callable[[str], None]
    ) -> Answer:
        """Fetch an image; the password goes through a private file that is gone afterwards."""
        if auth is None:
            return await self.call("pull", image, timeout=None, on_line=on_line)
        async with _auth_folder(auth) as folder:
            if self.kind == "docker":
                return await self.call("--config", folder, "pull", image, timeout=None, on_line=on_line)
            authfile = f"{folder}/config.json"
            return await self.call("pull", "--authfile", authfile, image, timeout=None, on_line=on_line)


def find_engine(wanted: str | None = None) -> Engine | None:
    """The engine called `wanted`, or the first that answers; a docker without its daemon does not. Blocks."""
    if wanted is not None and wanted not in ENGINES:
        raise ConfigError(
            f"container engine: {wanted!r} is not known", hint=f"choose one of {', '.join(ENGINES)}"
        )
    for kind in (wanted,) if wanted else ENGINES:
        program = shutil.which(kind)
        if program is None:
            continue
        try:
            answer = subprocess.run([program, "version"], capture_output=True, timeout=20)
        except (OSError, subprocess.SubprocessError):
            continue
        if answer.returncode == 0:
            return Engine(program, kind)
    return None


def run_argv(
    kind: str,
    spec: TaskSpec,
    *,
    name: str,
    image: str,
    workdir: str,
    adaptation: Adaptation,
    real_gpus: bool,
    environ: Mapping[str, str],
) -> list[str]:
    """The arguments that start a task's container in the background, without the program itself. Pure."""
    runtime = ["--runtime", adaptation.runtime] if adaptation.runtime else []
    argv = [*runtime, "run"] if kind == "podman" else ["run", *runtime]
    argv += ["--detach", "--pull", "never", "--name", name, "--label", f"openpaisdk.task={spec.key}"]
    argv += ["--network", "host", "--user", "0:0", "--log-driver", "none", "--security-opt", "label=disable"]
    if adaptation.limits:
        memory = f"{spec.memory_mb}m"
        argv += ["--memory", memory, "--memory-swap", memory, "--cpus", str(spec.cpu)]
    if spec.shm_mb:
        argv += ["--shm-size", f"{spec.shm_mb}m"]
    if adaptation.ulimits:
        for limit, most in ULIMITS[adaptation.ulimits - 1].items():
            argv += ["--ulimit", f"{limit}={most}:{most}"]
    if real_gpus and spec.gpus:
        argv += _gpu_flags(kind, spec.gpus)
    # The intent is what the next server goes by, so the task must not be able to change it.
    intent = f"{spec.folder}/intent.json"
    mounts = [(spec.folder, spec.folder, False), (intent, intent, True), *spec.mounts]
    for host, inside, readonly in mounts:
        argv += ["--volume", f"{host}:{inside}:{'ro' if readonly else 'rw'}"]
    argv += shlex.split(environ.get(FLAGS_VARIABLE, ""))
    return [*argv, "--workdir", workdir, "--entrypoint", "/bin/sh", image, f"{spec.folder}/run.sh"]


def parse_states(text: str) -> dict[str, ContainerState]:
    """Lines of `inspect` by container name."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5:
            name, status, pid, code, oom = words
            found[name.lstrip("/")] = ContainerState(status, int(pid), int(code), oom == "true")
    return found


def _gpu_flags(kind: str, gpus: Sequence[int]) -> list[str]:
    if kind == "docker":
        return ["--gpus", '"device=' + ",".join(str(gpu) for gpu in gpus) + '"']
    return [flag for gpu in gpus for flag in ("--device", f"nvidia.com/gpu={gpu}")]


async def _outputs(
    process: asyncio.subprocess.Process, on_line: Callable[[str], None] | None
) -> tuple[str, str]:
    async def read(stream: asyncio.StreamReader | None) -> str:
        text = ""
        while stream and (chunk := await stream.read(65536)):
            text += chunk.decode(errors="replace")
            if on_line:
                on_line(text.rstrip().rpartition("\n")[2])
        return text

    out, err = await asyncio.gather(read(process.stdout), read(process.stderr))
    return out, err


@asynccontextmanager
async def _auth_folder(auth: tuple[str, str, str]) -> AsyncIterator[str]:
    registry, user, password = auth
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    with tempfile.TemporaryDirectory(prefix="opai-auth-") as folder:
        path = Path(folder, "config.json")
        path.touch(mode=0o600)
        path.write_text(json.dumps({"auths": {registry: {"auth": token}}}))
        yield folder
