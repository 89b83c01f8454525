"""Starts real server processes for tests and benches, and ends them with everything they started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from openpaisdk.config import ClusterConfig
from openpaisdk.core import Cluster


class ServerProcess:
    """An embedded server on a free loopback port, data below `folder`; it can be killed and started again."""

    mode: tuple[str, ...] = ("--local",)

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.state_file = folder / "server.json"
        self.data_dir = folder / "data"
        self.ready: dict[str, Any] = {}
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> ServerProcess:
        """Returns when the server is ready to answer."""
        reader, writer = os.pipe()
        command = [
            *(sys.executable, "-m", "openpaisdk.server", *self.mode, "--data-dir", str(self.data_dir)),
            *("--state-file", str(self.state_file), "--ready-fd", str(writer), *self.options),
        ]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[writer],
                start_new_session=True,
            )
        os.close(writer)
        with os.fdopen(reader) as pipe:
            line = pipe.readline()
        if not line:
            raise RuntimeError(f"the server did not start:\n{self.log()[-3000:]}")
        self.ready = json.loads(line)
        return self

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self.state_file.read_text())

    @property
    def uri(self) -> str:
        return str(self.state["uri"])

    @property
    def token(self) -> str:
        return str(self.state["token"])

    @property
    def user(self) -> str:
        return str(self.state["user"])

    def cluster(self) -> Cluster:
        return Cluster(ClusterConfig(alias="test", pai_uri=self.uri, user=self.user, token=self.token))

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL: what a crash or the out-of-memory killer does; tasks go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> None:
        """Ends the server and every task it started."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        end_processes_of(self.folder)


class SharedServer(ServerProcess):
    """One for many users, with TLS, as an administrator starts it."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, *options)
        self.certificate = folder / "cert.pem"
        key = folder / "key.pem"
        make_certificate(self.certificate, key)
        self.mode = ("--port", "0", "--tls-cert", str(self.certificate), "--tls-key", str(key))

    @property
    def admin_password(self) -> str:
        """As it was shown at the first start."""
        found = re.search(r"with the password (\S+)", self.log())
        assert found is not None, self.log()
        return found[1]

    def cluster_of(self, user: str, password: str) -> Cluster:
        config = ClusterConfig(
            alias="lab", pai_uri=self.uri, user=user, passwd=password, verify=str(self.certificate)
        )
        return Cluster(config)


def make_certificate(certificate: Path, key: Path) -> None:
    """A certificate for this machine's loopback address that nobody signed."""
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )


def end_processes_of(folder: Path) -> None:
    """Kills every process that works below the folder or names it."""
    killed = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid():
                continue
            if str(folder) in " ".join(process.cmdline()) or process.cwd().startswith(str(folder)):
                process.kill()
                killed.append(process)
        except psutil.Error:
            continue
    for process in killed:
        wait_for_death(process)


def wait_for_death(process: psutil.Process, seconds: float = 10.0) -> None:
    """Until it runs no more; whether its new parent has reaped it already does not matter."""
    end = time.monotonic() + seconds
    with suppress(psutil.Error):
        while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
            time.sleep(0.005)
