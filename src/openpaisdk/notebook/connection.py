"""A local port that leads to the Jupyter server inside a job, for as long as the job runs."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from openpaisdk.core import TERMINAL, WaitTimeout
from openpaisdk.errors import ConflictError, NotFoundError, OpenPAIError, UnavailableError, UsageError
from openpaisdk.notebook.submission import PORT
from openpaisdk.notebook.ways import Target, Way, find_way, listen
from openpaisdk.protocol import split_job

if TYPE_CHECKING:
    from openpaisdk.core import Cluster

OUTAGE = 300.0


class Connection:
    """Waits for the job's Jupyter and serves it on a loopback port until the job or the person ends it."""

    def __init__(
        self,
        cluster: Cluster,
        job: str,
        *,
        port: int = 0,
        say: Callable[[str], Any] = lambda text: None,
        status: Callable[[str], Any] = lambda text: None,
    ) -> None:
        self.cluster = cluster
        self.user, self.name = split_job(job, cluster.user)
        self.say, self.status = say, status
        self.token: str | None = None
        self.file = self._require_interactive()
        self._listener = listen(port)
        self._way: Way | None = None
        self._closed = threading.Event()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        # A thread that waits in accept() is woken by a call, not by closing its socket.
        try:
            socket.create_connection(("127.0.0.1", self.local_port), 1).close()
        except OSError:
            pass
        self._listener.close()
        if self._way is not None:
            self._way.close()

    @property
    def local_port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Opens the notebook itself; without a token that is known here, Jupyter asks for it."""
        path = f"lab/tree/{quote(self.file)}" if self.file else "lab"
        token = f"?token={self.token}" if self.token else ""
        return f"http://127.0.0.1:{self.local_port}/{path}{token}"

    def wait_until_ready(self, timeout: float) -> None:
        """Returns when Jupyter answers; a job that ends before, or takes too long, is an error."""
        deadline = time.monotonic() + timeout
        self.status(f"{self.name}  waiting")
        detail = self.cluster.wait(self.name, self.user, until="running", timeout=timeout)
        while True:
            self._require_alive(detail)
            target = self._find(detail)
            if target is not None:
                break
            self._pause(deadline)
            detail = self.cluster.job(self.name, self.user)
        self._way = find_way(self.cluster, target)
        threading.Thread(target=self._accept, daemon=True).start()
        self.status(f"{self.name}  starting Jupyter")
        while not self._answers():
            self._require_alive(self.cluster.job(self.name, self.user))
            self._pause(deadline)
        self.token = self._find_token(target)

    def serve_until_ended(self) -> str:
        """Blocks while the job runs, and returns its last state; a lost cluster is waited for a while."""
        lost: float | None = None
        while True:
            try:
                state = self._state_within(10.0)
            except UnavailableError as error:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > OUTAGE:
                    raise UnavailableError(
                        f"the connection to {self.name} is lost: {error.message}",
                        hint=f"the job goes on by itself; opai job connect {self.name} connects again",
                    ) from None
                self.status(f"{self.name}  the connection is lost; trying again")
                self._closed.wait(1.0)
                continue
            if lost is not None:
                lost = None
                self.say(f"{self.name}  connected again")
            if state in TERMINAL:
                return state
            if self._way is not None:
                self._way.mend()

    def _state_within(self, seconds: float) -> str:
        try:
            detail = self.cluster.wait(self.name, self.user, timeout=seconds)
        except WaitTimeout:
            return "RUNNING"
        return str(detail["jobStatus"]["state"])

    def _require_interactive(self) -> str:
        """The name of the notebook; a job without a Jupyter is refused at once."""
        config = self.cluster.job_config(self.name, self.user)
        roles = (config.get("taskRoles") or {}).values()
        if not any(PORT in ((role.get("resourcePerInstance") or {}).get("ports") or {}) for role in roles):
            raise UsageError(
                f"job {self.name} has no Jupyter to connect to",
                hint="submit one with: opai job notebook NB.ipynb --mode interactive",
            )
        ours = (config.get("extras") or {}).get("openpaisdk") or {}
        return str((ours.get("notebook") or {}).get("file") or "")

    def _require_alive(self, detail: dict[str, Any]) -> None:
        state = detail["jobStatus"]["state"]
        if state in TERMINAL:
            raise ConflictError(
                f"job {self.name} has ended ({state.lower()}), there is nothing to connect to",
                hint=f"opai job why {self.name} tells why; opai job resubmit {self.name} runs it again",
            )

    def _pause(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"the Jupyter of {self.name} did not answer in time",
                hint=f"opai job logs {self.name} shows what it does; wait longer with --timeout",
            )
        self._closed.wait(0.2)

    def _find(self, detail: dict[str, Any]) -> Target | None:
        for role, entry in (detail.get("taskRoles") or {}).items():
            for status in entry.get("taskStatuses") or ():
                ports = status.get("containerPorts") or {}
                if status.get("containerIp") and ports.get(PORT):
                    return Target(
                        f"{self.user}~{self.name}",
                        f"{role}/{status['taskIndex']}",
                        status["containerIp"],
                        int(str(ports[PORT]).split(",")[0]),
                        int(str(ports.get("ssh") or 0).split(",")[0]),
                    )
        return None

    def _find_token(self, target: Target) -> str | None:
        """The one kept when it was submitted from here; else our server lets its owner read it there."""
        from openpaisdk.notebook.tokens import recall, remember

        alias = self.cluster.config.alias
        found = recall(alias, self.user, self.name)
        if found is None and "exec" in self.cluster.extensions:
            command = ["sh", "-c", 'cat "$PAI_SDK_TASK_DIR"/.jupyter-runtime/jpserver-*.json']
            try:
                run = self.cluster.exec_start(target.job, command, task=target.task)
                text = b"".join(
                    data for kind, data in self.cluster.exec_output(target.job, run) if kind == "out"
                )
                found = str(json.loads(text)["token"])
            except (OpenPAIError, ValueError, KeyError):
                return None
            remember(alias, self.user, self.name, found)
        return found

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.local_port), 5) as probe:
                probe.settimeout(10)
                probe.sendall(b"GET /api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                return probe.recv(64).startswith(b"HTTP/")
        except OSError:
            return False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._closed.is_set():
                client.close()
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """One connection of the browser, to its end; one that fails is the browser's to repeat."""
        with client:
            try:
                if self._way is not None:
                    self._way.carry(client)
            except (OSError, OpenPAIError, NotFoundError):
                return
