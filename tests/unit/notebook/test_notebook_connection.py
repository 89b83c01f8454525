"""The way to a job's Jupyter: direct, through the server, by ssh; and what is said when there is none."""

from __future__ import annotations

import json
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.config import ClusterConfig
from openpaisdk.core import Cluster
from openpaisdk.errors import ConflictError, UnavailableError, UsageError
from openpaisdk.job import Job
from openpaisdk.notebook import connection as connections
from openpaisdk.notebook import ways
from openpaisdk.notebook.connection import Connection
from openpaisdk.notebook.tokens import recall, remember
from support.fake_pai import ALL_EXTENSIONS, FakePAI

PAGE = b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Interactive(FakePAI):
    """A cluster whose job `inter` has a Jupyter on this machine; it ends when `over` is set."""

    def __init__(self, port: int, extensions: str = ALL_EXTENSIONS) -> None:
        super().__init__(extensions=extensions)
        self.port = port
        self.over = threading.Event()
        job = Job("inter").task_role("notebook", "jupyter", ports={"jupyter": 1})
        job.spec["extras"] = {"openpaisdk": {"notebook": {"file": "my nb.ipynb", "mode": "interactive"}}}
        self.add("inter", spec=job.spec)
        self.add("plain")

    def _detail(self, job: dict[str, Any]) -> dict[str, Any]:
        detail = super()._detail(job)
        for role in detail["taskRoles"].values():
            for status in role["taskStatuses"]:
                status.update(
                    containerIp="127.0.0.1", containerPorts={"jupyter": str(self.port), "ssh": "22"}
                )
        return detail

    def end(self, job: dict[str, Any]) -> None:
        if self.over.wait(0.05):
            super().end(job)


@pytest.fixture
def jupyter() -> Iterator[int]:
    """Answers every connection with a page, as a Jupyter would."""
    listener = ways.listen(0)

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(1000)
                client.sendall(PAGE)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def cluster(pai: FakePAI, alias: str = "lab") -> Cluster:
    config = ClusterConfig(alias, "http://pai.example.org", user="ann", token="t")
    return Cluster(config, transport=pai, sleep=lambda seconds: None)


def ask(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: client.recv(1000), b""))


def test_a_port_here_leads_to_the_jupyter_until_the_job_ends(
    jupyter: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pai = Interactive(jupyter, extensions="wait,files")
    remember("lab", "ann", "inter", "s3cret")
    with Connection(cluster(pai), "inter") as made:
        made.wait_until_ready(5)
        assert made.url == f"http://127.0.0.1:{made.local_port}/lab/tree/my%20nb.ipynb?token=s3cret"
        assert ask(made.local_port) == PAGE
        pai.over.set()
        assert made.serve_until_ended() == "SUCCEEDED"
        port = made.local_port
    with pytest.raises(OSError):
        ask(port)


def test_a_lost_cluster_is_waited_for_and_then_given_up(
    jupyter: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pai = Interactive(jupyter, extensions="wait,files")
    said: list[str] = []
    with Connection(cluster(pai), "ann~inter", say=said.append, status=said.append) as made:
        made.wait_until_ready(5)
        answers: list[Any] = [UnavailableError("it is away"), "RUNNING", "SUCCEEDED"]

        def state(seconds: float) -> str:
            found = answers.pop(0) if answers else UnavailableError("it is away")
            if isinstance(found, Exception):
                raise found
            return str(found)

        monkeypatch.setattr(made, "_state_within", state)
        monkeypatch.setattr(made._closed, "wait", lambda seconds: None)
        assert made.serve_until_ended() == "SUCCEEDED"
        assert any("trying again" in text for text in said) and "inter  connected again" in said
        monkeypatch.setattr(connections, "OUTAGE", -1.0)
        with pytest.raises(UnavailableError, match=r"connection to inter is lost: it is away") as caught:
            made.serve_until_ended()
        assert "opai job connect inter" in (caught.value.hint or "")


def test_what_cannot_be_connected_to_is_said(jupyter: int) -> None:
    pai = Interactive(jupyter)
    with pytest.raises(UsageError, match="plain has no Jupyter"):
        Connection(cluster(pai), "plain")
    with pytest.raises(ConflictError, match=f"port {jupyter} of this machine cannot be used") as caught:
        Connection(cluster(pai), "inter", port=jupyter)
    assert "--port" in (caught.value.hint or "")
    with pytest.raises(ConflictError, match="port 70000"):
        Connection(cluster(pai), "inter", port=70000)
    pai.jobs["ann~inter"]["state"] = "FAILED"
    with (
        Connection(cluster(pai), "inter") as made,
        pytest.raises(ConflictError, match=r"has ended \(failed\)") as ended,
    ):
        made.wait_until_ready(5)
    assert "opai job why inter" in (ended.value.hint or "")


def test_a_jupyter_that_never_answers_ends_with_a_sentence() -> None:
    with ways.listen(0) as free:
        port = free.getsockname()[1]
    pai = Interactive(port, extensions="wait,files")
    with (
        Connection(cluster(pai), "inter") as made,
        pytest.raises(UnavailableError, match="did not answer in time"),
    ):
        made.wait_until_ready(0.5)


def test_the_server_leads_in_where_it_can(jupyter: int) -> None:
    """The tunnel's own program is run here, in place of the server that would run it in the task."""
    import subprocess

    class Runs:
        extensions = frozenset({"exec"})
        config = ClusterConfig("lab")

        def exec_start(self, job: str, command: list[str], *, task: str) -> str:
            assert (job, task) == ("ann~inter", "notebook/0")
            argv = [sys.executable, *command[1:]]
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            return "1"

        def exec_input(self, job: str, run: str, data: bytes, *, end: bool) -> None:
            assert self.process.stdin is not None
            self.process.stdin.write(data)
            self.process.stdin.close() if end else self.process.stdin.flush()

        def exec_output(self, job: str, run: str) -> Iterator[tuple[str, bytes]]:
            assert self.process.stdout is not None
            with self.process:
                while data := self.process.stdout.read1(1000):  # type: ignore[attr-defined]
                    yield "out", data

    target = ways.Target("ann~inter", "notebook/0", "10.0.0.1", jupyter, 0)
    way = ways.find_way(Runs(), target)  # type: ignore[arg-type]
    assert isinstance(way, ways.ThroughServer)
    one, other = socket.socketpair()
    with one, other:
        carrying = threading.Thread(target=way.carry, args=(other,))
        carrying.start()
        one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        found = b""
        while len(found) < len(PAGE):
            found += one.recv(1000)
        one.shutdown(socket.SHUT_RDWR)
        carrying.join(10)
    assert found == PAGE


def test_ssh_is_the_last_way_and_its_absence_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    target = ways.Target("ann~inter", "notebook/0", "10.0.0.1", 8888, 2222)

    class Plain:
        extensions: frozenset[str] = frozenset()
        config = ClusterConfig("pai")

    monkeypatch.setattr(ways, "reachable", lambda host, port: False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match="`ssh` is not installed"):
        ways.find_way(Plain(), target)  # type: ignore[arg-type]
    started: list[list[str]] = []

    class Ended:
        def __init__(self, argv: list[str]) -> None:
            started.append(argv)

        def poll(self) -> int:
            return 255

        def terminate(self) -> None:
            return

        def wait(self, seconds: float) -> None:
            return

    monkeypatch.setattr(ways.subprocess, "Popen", Ended)
    way = ways.find_way(Plain(), target)  # type: ignore[arg-type]
    way.mend()
    way.close()
    assert len(started) == 2 and started[0] == started[1]
    assert started[0][-3:] == ["-p", "2222", "root@10.0.0.1"]
    assert any(word.endswith(":10.0.0.1:8888") for word in started[0])


def test_tokens_are_kept_for_their_owner_only(empty_home: Path) -> None:
    for number in range(205):
        remember("lab", "ann", f"job{number}", f"t{number}")
    file = empty_home / ".openpai" / "jupyter-tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert recall("lab", "ann", "job204") == "t204"
    assert recall("lab", "ann", "job0") is None
    assert len(json.loads(file.read_text())) == 200
