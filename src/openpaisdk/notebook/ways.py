"""The ways to a port inside a job: on this machine, through our server, by the network, by ssh."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from openpaisdk.errors import ConflictError, UnavailableError

if TYPE_CHECKING:
    from openpaisdk.core import Cluster

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
    while data:
        data = data[os.write(1, data):]
"""


class Target(NamedTuple):
    """Where the port is: in which task of which job, at which address."""

    job: str
    task: str
    host: str
    port: int
    ssh_port: int


class Way(Protocol):
    """How bytes get there."""

    def carry(self, client: socket.socket) -> None:
        """Join the client with the port until they hang up. Blocks; fails with OSError or OpenPAIError."""

    def mend(self) -> None:
        """Called now and then: bring back what has ended. Quick."""

    def close(self) -> None:
        """End what was started. May be repeated."""


class Direct:
    """A plain connection."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)

    def carry(self, client: socket.socket) -> None:
        with socket.create_connection(self.address, 10) as remote:
            remote.settimeout(None)
            join(client, remote)

    def mend(self) -> None:
        return

    def close(self) -> None:
        return


class ThroughServer:
    """Our server runs a small program in the task, whose input and output are the connection."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self.cluster = cluster
        self.target = target

    def carry(self, client: socket.socket) -> None:
        job = self.target.job
        command = ["python3", "-c", TUNNEL, "127.0.0.1", str(self.target.port)]
        run = self.cluster.exec_start(job, command, task=self.target.task)

        def send() -> None:
            data = b"."
            while data:
                data = client.recv(65536)
                self.cluster.exec_input(job, run, data, end=not data)

        threading.Thread(target=quietly, args=(send,), daemon=True).start()
        for kind, data in self.cluster.exec_output(job, run):
            if kind == "out":
                client.sendall(data)

    def mend(self) -> None:
        return

    def close(self) -> None:
        return


class Ssh:
    """An ssh client forwards a port of this machine."""

    def __init__(self, target: Target) -> None:
        self.target = target
        with listen(0) as free:
            self.port: int = free.getsockname()[1]
        self._direct = Direct("127.0.0.1", self.port)
        self._process = self._start()

    def argv(self) -> list[str]:
        there = f"127.0.0.1:{self.port}:{self.target.host}:{self.target.port}"
        options = ["-N", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15", "-L", there]
        return ["ssh", *options, "-p", str(self.target.ssh_port or 22), f"root@{self.target.host}"]

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(self.argv())
        except FileNotFoundError:
            address = f"{self.target.host}:{self.target.port}"
            raise UnavailableError(
                f"{address} cannot be reached from here, and the program `ssh` is not installed",
                hint="install an ssh client, or connect from a machine in the cluster's network",
            ) from None

    def carry(self, client: socket.socket) -> None:
        self._direct.carry(client)

    def mend(self) -> None:
        if self._process.poll() is not None:
            self._process = self._start()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(5)


def find_way(cluster: Cluster, target: Target) -> Way:
    """The nearest one. Jupyter listens on loopback where our server can lead in, else on the network."""
    if cluster.config.alias == "local":
        return Direct(target.host, target.port)
    if "exec" in cluster.extensions:
        return ThroughServer(cluster, target)
    if reachable(target.host, target.port):
        return Direct(target.host, target.port)
    return Ssh(target)


def listen(port: int) -> socket.socket:
    """A listening loopback socket; port 0 is any free one."""
    listener = socket.socket()
    # Leftovers of an earlier connection on the same port are no reason to refuse it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        why = "is not a port" if isinstance(error, OverflowError) else f"cannot be used: {error.strerror}"
        raise ConflictError(
            f"port {port} of this machine {why}", hint="choose another with --port, or leave it out"
        ) from None
    return listener


def reachable(host: str, port: int) -> bool:
    """Whether packets get there: a refusal is an answer, Jupyter may not listen yet."""
    try:
        socket.create_connection((host, port), 3).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def join(one: socket.socket, other: socket.socket) -> None:
    """Copies both ways until both ends have nothing more to say."""

    def copy(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=quietly, args=(copy, one, other), daemon=True)
    sender.start()
    quietly(copy, other, one)
    # Nobody answers any more; a client that only listens would wait for ever.
    quietly(one.shutdown, socket.SHUT_RDWR)
    sender.join()


def quietly(action: Callable[..., Any], *args: Any) -> None:
    """An end that hangs up is how every connection ends."""
    from openpaisdk.errors import OpenPAIError

    try:
        action(*args)
    except (OSError, OpenPAIError):
        return
