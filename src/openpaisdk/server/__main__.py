"""Starts a server: `python -m openpaisdk.server [--local] [--host H --port P --data-dir D ...]`."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import sys
import time
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from openpaisdk.errors import ConfigError, ConflictError, OpenPAIError
from openpaisdk.server import settings as options
from openpaisdk.server.settings import Settings
from openpaisdk.version import __version__

# The beginnings of the names that tasks of a shared server may see: machine, language, GPUs, engines.
PUBLIC_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_", "TZ", "TMPDIR", "XDG_", "DBUS_"),
    *("LD_", "PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "SSL_CERT_", "CUDA", "NVIDIA", "NCCL", "OMP_"),
    *("DOCKER_", "CONTAINER", "PODMAN", "OPENPAI_", "NOTIFY_SOCKET"),
)


def main(argv: list[str] | None = None) -> int:
    """Run until told to stop; the exit code."""
    try:
        chosen = options.parse(sys.argv[1:] if argv is None else argv)
        chosen.require_safe()
        _log_to_stderr()
        with _lock(chosen.data_dir):
            return asyncio.run(_serve(chosen))
    except OpenPAIError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        sys.stderr.write(f"error: {error.message}{hint}\n")
        return error.exit_code


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


class _lock:
    """One server per data folder: held as long as the process lives, also when it is killed."""

    def __init__(self, data_dir: Path) -> None:
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"cannot use {data_dir} as data folder: {error.strerror}",
                hint="choose another with --data-dir",
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise ConflictError(
                f"another server uses {data_dir}", hint="stop it first, or choose another --data-dir"
            ) from None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


async def _serve(chosen: Settings) -> int:
    from openpaisdk.launchers import default_launcher
    from openpaisdk.server.accounts import Accounts
    from openpaisdk.server.app import build_app
    from openpaisdk.server.database import Database
    from openpaisdk.server.listening import Listener, address_of, bind
    from openpaisdk.server.services import Services

    _raise_file_limit()
    if not chosen.local:
        _forget_private_variables(os.environ)
    bound = bind(chosen)
    uri = address_of(chosen, bound)
    os.umask(0o077)
    db = Database(chosen.database)
    accounts = Accounts(db, virtual_clusters=chosen.virtual_clusters)
    token = accounts.ensure_local_user(chosen.local_user) if chosen.local else ""
    launcher = default_launcher(chosen.launcher, fake_gpus=chosen.fake_gpus)
    stopping = asyncio.Event()
    services = Services(chosen, db, accounts, launcher, uri=uri, request_stop=stopping.set)
    listener = Listener(build_app(services), chosen)
    services.start()
    serving = asyncio.ensure_future(listener.serve(sockets=[bound]))
    _stop_on_signals(stopping)
    try:
        while not listener.started and not serving.done():
            await asyncio.sleep(0.001)
        if not chosen.local:
            _greet(accounts, uri, launcher.name)
        _announce(chosen, services, token)
        stopper = asyncio.ensure_future(stopping.wait())
        await asyncio.wait({stopper, serving}, return_when=asyncio.FIRST_COMPLETED)
        stopper.cancel()
    finally:
        # Streams look at `closing` and end by themselves, so that nobody is cut off in the middle of a line.
        services.closing.set()
        services.loop.changes.tell_all()
        listener.stop()
        await asyncio.gather(serving, return_exceptions=True)
        await services.close()
        _forget_state(chosen)
    return 0


def _raise_file_limit() -> None:
    """Every follower, task and connection takes a descriptor."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _stop_on_signals(stopping: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    # A terminal that closes must not take the cluster with it.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _forget_private_variables(environ: MutableMapping[str, str]) -> None:
    """Tasks inherit what is left: what was set in the shell of whoever started a shared server is theirs."""
    for name in [name for name in environ if not name.startswith(PUBLIC_VARIABLES)]:
        if not name.lower().endswith("_proxy"):
            del environ[name]


def _greet(accounts: Any, uri: str, launcher: str) -> None:
    password = accounts.first_start()
    if password:
        sys.stdout.write(
            f"The user admin was created, with the password {password}\n"
            "It is shown this once; change it after the first login.\n"
        )
    if launcher != "container":
        sys.stdout.write(
            "Tasks without a container run as the user of this server, and may read what it reads; "
            "--launcher container keeps people apart.\n"
        )
    sys.stdout.write(f"Serving on {uri}\n")
    sys.stdout.flush()


def _announce(chosen: Settings, services: Any, token: str) -> None:
    """Tell whoever started us: the state file for later, the line on the descriptor for now."""
    from openpaisdk.launchers.watch import start_ticks

    state = {
        "pid": os.getpid(),
        "pid_started": _started_at(),
        "pid_ticks": start_ticks(os.getpid()),
        "uri": services.uri,
        "token": token,
        "user": "",
        "version": __version__,
        "data_dir": str(chosen.data_dir),
        "launcher": services.launcher.name,
        "started_at": time.time(),
    }
    if chosen.local:
        from openpaisdk.server.accounts import account_name

        state["user"] = account_name(chosen.local_user)
    if chosen.state_file is not None:
        from openpaisdk.config import write_private

        write_private(chosen.state_file, json.dumps(state))
    if chosen.ready_fd is not None:
        shown = {name: state[name] for name in ("uri", "pid", "pid_started", "user", "version", "launcher")}
        line = json.dumps({**shown, "capacity": services.capacity_view()}) + "\n"
        with suppress(OSError), os.fdopen(chosen.ready_fd, "w") as ready:
            ready.write(line)


def _started_at() -> float:
    import psutil

    return float(psutil.Process().create_time())


def _forget_state(chosen: Settings) -> None:
    if chosen.state_file is not None:
        with suppress(OSError):
            chosen.state_file.unlink()


if __name__ == "__main__":
    raise SystemExit(main())
