"""The embedded cluster: find this user's running server or start it, one however many shells ask."""

# pathlib costs a third of a bare interpreter start, and every command on the embedded cluster comes here.
# ruff: noqa: PTH100, PTH108, PTH112, PTH119, PTH120, PTH123

from __future__ import annotations

import json
import os
import sys
import time

from openpaisdk.config import ClusterConfig, home_path, locked, read_json, write_private
from openpaisdk.errors import ConfigError, OpenPAIError, UnavailableError, UsageError
from openpaisdk.local.process import alive, started_here
from openpaisdk.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

# What is started, after the name of the interpreter.
PROGRAM = ("-m", "openpaisdk.server")
READY_WITHIN = 30.0
STOPS_WITHIN = 10.0
# What the server writes before it can take a job, generously.
ROOM_NEEDED = 5_000_000


def state_file() -> str:
    """Where the running server says who and where it is."""
    return home_path("local", "server.json")


def data_folder() -> str:
    """Where the server keeps jobs and their files."""
    return home_path("local", "data")


def log_path() -> str:
    """What the server itself says."""
    return home_path("local", "server.log")


def ensure(*, restart_if_dead: bool = False) -> ClusterConfig:
    """The running embedded cluster, started where there is none; `extra["started"]` then tells its capacity.

    Looks at the state file and the process only, so that it costs next to nothing. A caller whose request was
    refused nevertheless asks with `restart_if_dead`, and the address is tried as well.
    """
    _refuse_windows()
    state = _read_state()
    if state is not None and alive(state) and not _older(state) and not restart_if_dead:
        return _config(state)
    with locked(home_path("local", "server")):
        state = _read_state()
        if state is not None and alive(state, thorough=True):
            if not _older(state) and (not restart_if_dead or _answers(state["uri"])):
                return _config(state)
            _end(state, ask=_older(state))
        options = read_json(_options_file())
        return _config(*_start(options if isinstance(options, list) else []))


def start(options: Sequence[str] = ()) -> ClusterConfig:
    """Start the server with options (`--fake-gpus 2`, `--host` ...), which a crash does not make it forget.

    UsageError where one runs already.
    """
    _refuse_windows()
    with locked(home_path("local", "server")):
        state = _read_state()
        if state is not None and alive(state):
            raise UsageError(
                f"the embedded server already runs (pid {state['pid']}, {state['uri']})",
                hint="stop it first with `opai server stop`; running jobs go on meanwhile",
            )
        config = _config(*_start(options))
        if options:
            write_private(_options_file(), json.dumps(list(options)))
        return config


def stop() -> dict[str, Any] | None:
    """Stop the server and return what it was, None where none runs. Running tasks go on."""
    _refuse_windows()
    with locked(home_path("local", "server")):
        state = _read_state()
        _remove(_options_file())
        running = state is not None and alive(state, thorough=True)
        if state is not None and running:
            _end(state, ask=True)
        _remove(state_file())
        return _public(state) if state is not None and running else None


def status() -> dict[str, Any]:
    """Whether the server runs, and if so its process, address, version, folders, launcher and load."""
    _refuse_windows()
    state = _read_state()
    if state is None or not alive(state):
        return {"running": False, "data_dir": data_folder(), "log": log_path()}
    found = {"running": True, **_public(state), "log": log_path()}
    try:
        found.update(_ask(state, "GET", "/api/v2/server"))
    except (OpenPAIError, ValueError) as error:
        found["problem"] = str(error)
    return found


def reset() -> None:
    """Stop every job and the server, and delete all that it kept."""
    _refuse_windows()
    if os.path.isdir(data_folder()):
        _stop_jobs(_read_state() or {})
    stop()
    from shutil import rmtree

    rmtree(data_folder(), ignore_errors=True)
    for path in (log_path(), state_file()):
        _remove(path)


def _stop_jobs(state: dict[str, Any], patience: float = 30.0) -> None:
    """Stop what runs, because nobody could stop it once the server has forgotten it."""
    ensure(restart_if_dead=bool(state) and not alive(state))
    found = _read_state() or {}
    query = "/api/v2/jobs?state=WAITING,RUNNING,STOPPING&limit=50000"
    end = time.monotonic() + patience
    asked: set[str] = set()
    while jobs := _ask(found, "GET", query):
        for job in jobs:
            name = f"{job['username']}~{job['name']}"
            if name not in asked:
                asked.add(name)
                _ask(found, "PUT", f"/api/v2/jobs/{name}/executionType", {"value": "STOP"})
        if time.monotonic() > end:
            raise UnavailableError(
                f"{len(jobs)} jobs do not stop",
                hint="look at them with `opai job list -a local` and try again",
            )
        time.sleep(0.1)


def _ask(state: dict[str, Any], method: str, path: str, send: Any = None) -> Any:
    from openpaisdk.transport import Transport

    transport = Transport(state["uri"], timeout=10.0)
    headers = {"authorization": f"Bearer {state['token']}", "content-type": "application/json"}
    try:
        response = transport.request(
            method, path, headers=headers, body=None if send is None else json.dumps(send).encode()
        )
    finally:
        transport.close()
    if response.status >= 300:
        raise UnavailableError(f"the embedded server answered {method} {path} with HTTP {response.status}")
    return response.json()


def _refuse_windows() -> None:
    if os.name == "nt":
        raise UsageError(
            "the embedded cluster needs Linux or macOS",
            hint="submit to a cluster elsewhere (`opai cluster add`), or run this inside WSL",
        )


def _options_file() -> str:
    return home_path("local", "options.json")


def _read_state() -> dict[str, Any] | None:
    try:
        found = read_json(state_file())
    except ConfigError:
        return None
    if not isinstance(found, dict):
        return None
    known = all(isinstance(found.get(key), str) for key in ("uri", "token")) and isinstance(
        found.get("pid"), int
    )
    return found if known else None


def _config(state: dict[str, Any], started: dict[str, Any] | None = None) -> ClusterConfig:
    return ClusterConfig(
        "local",
        state["uri"],
        user=state.get("user"),
        token=state["token"],
        extra={} if started is None else {"started": started},
    )


def _public(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != "token"}


def _older(state: dict[str, Any]) -> bool:
    """Whether the server is older than this client; a newer one is used as it is."""

    def numbers(version: object) -> list[int]:
        return [int(part) for part in str(version).split("+")[0].split(".") if part.isdigit()]

    return numbers(state.get("version")) < numbers(__version__)


def _answers(uri: str) -> bool:
    """Whether something takes connections at the address."""
    import socket

    from openpaisdk.transport import split_url

    _, host, port = split_url(uri)[0]
    try:
        socket.create_connection((host, port), 2.0).close()
    except OSError:
        return False
    return True


def _end(state: dict[str, Any], *, ask: bool) -> None:
    """See a server off: wait for one that is going, ask one that is not, and end one that does not listen."""
    from signal import SIGKILL, SIGTERM

    def gone(seconds: float) -> bool:
        return _until(lambda: not alive(state), seconds)

    if not ask and gone(2.0):
        return
    for number in (SIGTERM, SIGKILL):
        try:
            os.kill(state["pid"], number)
        except ProcessLookupError:
            return
        except OSError as error:
            raise UnavailableError(
                f"cannot stop the server (pid {state['pid']}): {error.strerror}"
            ) from error
        if gone(STOPS_WITHIN):
            return
    raise UnavailableError(
        f"the server (pid {state['pid']}) does not end", hint="end it by hand and try again"
    )


def _until(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _start(options: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start the server apart from this process and wait until it is ready; its state and its first words."""
    from subprocess import DEVNULL, Popen

    _remove(state_file())
    folder = os.path.dirname(state_file())
    receiving, sending = os.pipe()
    command = [sys.executable, *PROGRAM, "--local"]
    if "--data-dir" not in options:
        command += ["--data-dir", data_folder()]
    command += ["--state-file", state_file(), "--ready-fd", str(sending), *options]
    try:
        with open(os.open(log_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            begin = log.tell()
            try:
                process = Popen(
                    command,
                    stdin=DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=_environment(),
                    pass_fds=(sending,),
                    start_new_session=True,
                )
            finally:
                os.close(sending)
        line = _first_line(receiving, READY_WITHIN)
    finally:
        os.close(receiving)
    try:
        ready = json.loads(line)
    except ValueError:
        ready = None
    state = _read_state()
    if isinstance(ready, dict) and state is not None:
        # It outlives this process, so Popen need not watch it; `alive` collects it should it end before.
        process.returncode = 0
        started_here.add(process.pid)
        return state, ready
    code = process.poll() if line else _ended(process)
    process.kill()
    process.wait()
    why = _last_words(begin) or (
        f"it was not ready within {READY_WITHIN:g} s" if code is None else f"it ended with exit code {code}"
    )
    raise UnavailableError(f"the embedded server did not start: {why}", hint=_remedy())


def _ended(process: Any) -> int | None:
    """The exit code of a server that closed its pipe without a word; None while it still runs."""
    from subprocess import TimeoutExpired

    try:
        return int(process.wait(1.0))
    except TimeoutExpired:
        return None


def _remedy() -> str:
    """Its log, or the disk where that is too full for a log."""
    folder = os.path.dirname(state_file())
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < ROOM_NEEDED:
        return f"only {free // 1000} kB are free in {folder}; make room, or set OPENPAI_HOME to another disk"
    return f"its log is {log_path()}"


def _environment() -> dict[str, str]:
    """The environment for the server, with the folder of this package where it is not an installed one."""
    environment = dict(os.environ)
    above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.basename(above) not in ("site-packages", "dist-packages"):
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = above + (os.pathsep + known if known else "")
    return environment


def _first_line(pipe: int, seconds: float) -> bytes:
    from select import select

    line = b""
    end = time.monotonic() + seconds
    while not line.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0 or not select([pipe], [], [], left)[0]:
            break
        piece = os.read(pipe, 65536)
        if not piece:
            break
        line += piece
    return line


def _last_words(begin: int) -> str:
    """The last line that the server wrote before it ended."""
    try:
        with open(log_path(), encoding="utf-8", errors="replace") as log:
            log.seek(begin)
            lines = [line.strip() for line in log.read().splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1] if lines else ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
