"""A local port that leads to the Jupyter server inside a job: directly, through our server, or by ssh."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openpaisdk.errors import ConflictError, NotFoundError, OpenPAIError, UnavailableError, UsageError
from openpaisdk.notebook.submission import PORT
from openpaisdk.protocol import split_job

if TYPE_CHECKING:
    from openpaisdk.core import Cluster

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")

# Runs inside the task: standard input and output are the two ends of a connection to the port.
TUNNEL = """
import os, socket, sys, threading
link = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
link.settimeout(None)
def send():
    while True:
        data = os.read(0, 65536)
        if not data:
            break
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while True:
    data = link.recv(65536)
    if not data:
        break
    os.write(1, data)
"""


class Connection:
    """Waits for the job's Jupyter and serves it on a loopback port until the job ends or the person leaves."""

    def __init__(self, cluster: Cluster, job: str, *, port: int = 0, status: Callable[[str], Any] = lambda text: None) -> None:
        from openpaisdk.notebook.tokens import recall

        self.cluster = cluster
        self.user, self.name = split_job(job, cluster.user)
        self.status = status
        self.token = recall(cluster.alias, self.user, self.name)
        self._listener = _listen(port)
        self._ssh: subprocess.Popen[bytes] | None = None
        self.host = ""
        self.remote_port = 0
        self.task = ""
        self._ssh_port = 0
        self._address: tuple[str, int] | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._listener.close()
        if self._ssh is not None:
            self._ssh.terminate()
            self._ssh.wait(5)

    @property
    def local_port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        if self.token is None:
            return f"http://127.0.0.1:{self.local_port}/lab"
        return f"http://127.0.0.1:{self.local_port}/lab?token={self.token}"

    def wait_until_ready(self, timeout: float) -> None:
        """Returns when Jupyter answers; a job that is not interactive, ends or takes too long is an error."""
        deadline = time.monotonic() + timeout
        self.status(f"{self.name}  waiting")
        detail = self.cluster.wait(self.name, self.user, until="running", timeout=timeout)
        while True:
            self._require_alive(detail)
            if self._find_port(detail):
                break
            self._pause(deadline)
            detail = self.cluster.job(self.name, self.user)
        self._choose_way()
        threading.Thread(target=self._accept, daemon=True).start()
        self.status(f"{self.name}  starting Jupyter")
        while not self._answers():
            self._require_alive(self.cluster.job(self.name, self.user))
            self._pause(deadline)

    def serve_until_ended(self) -> None:
        """Blocks while the job runs."""
        self.cluster.wait(self.name, self.user)

    def _require_alive(self, detail: dict[str, Any]) -> None:
        state = detail["jobStatus"]["state"]
        if state in ENDED:
            raise ConflictError(f"job {self.name} has {state.lower()}", hint=f"opai job why {self.name}; opai job logs {self.name}")

    def _pause(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise UnavailableError(f"the Jupyter of {self.name} did not answer in time", hint=f"opai job logs {self.name}")
        self._ended.wait(0.2)

    def _find_port(self, detail: dict[str, Any]) -> bool:
        for role, entry in (detail.get("taskRoles") or {}).items():
            for status in entry.get("taskStatuses") or ():
                ports = status.get("containerPorts") or {}
                if status.get("taskState") == "RUNNING" and ports and not ports.get(PORT):
                    raise UsageError(
                        f"job {self.name} is not an interactive notebook", hint="opai job notebook NB.ipynb --mode interactive"
                    )
                if status.get("containerIp") and ports.get(PORT):
                    self.task = f"{role}/{status['taskIndex']}"
                    self.host = status["containerIp"]
                    self.remote_port = int(str(ports[PORT]).split(",")[0])
                    self._ssh_port = int(str(ports.get("ssh") or 0).split(",")[0])
                    return True
        return False

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.local_port), 5) as probe:
                probe.settimeout(5)
                probe.sendall(b"GET /api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                return probe.recv(64).startswith(b"HTTP/")
        except OSError:
            return False

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """One browser connection, to its end."""
        with client:
            try:
                if self._address is None:
                    self._through_server(client)
                    return
                with socket.create_connection(self._address, 10) as remote:
                    remote.settimeout(None)
                    _join(client, remote)
            except (OSError, OpenPAIError):
                return

    def _choose_way(self) -> None:
        """Directly on this machine or where the address answers; inside the task through our server; or by ssh."""
        here = urlsplit(self.cluster.portal_uri).hostname in ("127.0.0.1", "localhost", "::1")
        if "exec" in self.cluster.extensions:
            self._address = (self.host, self.remote_port) if here else None
        elif _reachable(self.host, self.remote_port):
            self._address = (self.host, self.remote_port)
        else:
            self._address = ("127.0.0.1", self._open_ssh())

    def _open_ssh(self) -> int:
        with _listen(0) as free:
            port: int = free.getsockname()[1]
        words = ["ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{port}:{self.host}:{self.remote_port}"]
        try:
            self._ssh = subprocess.Popen([*words, "-p", str(self._ssh_port), f"root@{self.host}"])
        except FileNotFoundError:
            raise NotFoundError(
                f"{self.host}:{self.remote_port} cannot be reached from here, and the program `ssh` is not installed",
                hint="install an ssh client, or open the address from a machine in the cluster's network",
            ) from None
        return port

    def _through_server(self, client: socket.socket) -> None:
        command = ["python3", "-c", TUNNEL, self.host, str(self.remote_port)]
        run = self.cluster.exec_start(f"{self.user}~{self.name}", command, task=self.task)

        def send() -> None:
            while True:
                data = client.recv(65536)
                self.cluster.exec_input(f"{self.user}~{self.name}", run, data, end=not data)
                if not data:
                    return

        threading.Thread(target=_quietly, args=(send,), daemon=True).start()
        for kind, data in self.cluster.exec_output(f"{self.user}~{self.name}", run):
            if kind == "out":
                client.sendall(data)


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise ConflictError(f"port {port} is taken on this machine", hint="choose another with --port, or leave it out") from None
    listener.listen(64)
    return listener


def _reachable(host: str, port: int) -> bool:
    """Whether packets get there: a refusal is an answer, Jupyter may not listen yet."""
    try:
        socket.create_connection((host, port), 3).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def _join(one: socket.socket, other: socket.socket) -> None:
    def copy(source: socket.socket, target: socket.socket) -> None:
        while True:
            data = source.recv(65536)
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)

    sender = threading.Thread(target=_quietly, args=(copy, one, other), daemon=True)
    sender.start()
    _quietly(copy, other, one)
    sender.join()


def _quietly(action: Callable[..., None], *args: Any) -> None:
    """An end that hangs up is how every connection ends."""
    try:
        action(*args)
    except OSError:
        return
