"""A real server, real jobs and people who want what is not theirs."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.servers import ServerProcess

JOB = json.dumps(
    {
        "protocolVersion": 2,
        "name": "secret",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3"}],
        "secrets": {"password": "hunter2-hunter2"},
        "taskRoles": {
            "worker": {
                "instances": 1,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
                "commands": ["echo started", "sleep 300"],
            }
        },
    }
)
PRIVATE = (
    "env.sh",
    "script.sh",
    "started.json",
    "..%2fenv.sh",
    "..%2f..%2f..%2f..%2fserver.db",
    "%2fetc%2fhosts",
)
ONE_TASK = "/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"


class Person:
    """Somebody with a token (or none) at a server."""

    def __init__(self, server: ServerProcess, token: str | None) -> None:
        self._address = urlsplit(server.uri).netloc
        self._token = token

    def ask(self, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        sent = {"authorization": f"Bearer {self._token}"} if self._token else {}
        body = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
        sent.update({"content-type": "application/json"} if body is not None else {})
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(errors="replace")
        connection.close()
        return found


@pytest.fixture(params=[(), ("--own-jobs-only",)], ids=["everybody-lists", "own-jobs-only"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "server", "--launcher", "process", *request.param).start()
    yield process
    process.stop()


@pytest.fixture
def people(server: ServerProcess) -> dict[str, Person]:
    """The admin, and alice and bob, who are nobody special; alice runs a job named `secret`."""
    admin = Person(server, server.token)
    found = {"admin": admin, "nobody": Person(server, None)}
    for name in ("alice", "bob"):
        login = {"username": name, "password": f"{name}-secret"}
        assert admin.ask("POST", "/api/v2/users", login)[0] == 201
        found[name] = Person(server, json.loads(admin.ask("POST", "/api/v1/token", login)[1])["token"])
    assert found["alice"].ask("POST", "/api/v2/jobs", JOB.encode(), content_type="text/yaml")[0] == 202
    path = "/api/v2/jobs/alice~secret/wait?state=WAITING&timeout=20"
    assert json.loads(found["alice"].ask("GET", path)[1])["jobStatus"]["state"] == "RUNNING"
    return found


def test_jobs_of_others(people: dict[str, Person], server: ServerProcess) -> None:
    job = "/api/v2/jobs/alice~secret"
    hidden = "--own-jobs-only" in server.options
    changes: list[tuple[str, str, Any]] = [
        ("PUT", "/executionType", {"value": "STOP"}),
        ("PUT", "/tag", {"value": "x"}),
        ("DELETE", "/tag", {"value": "x"}),
        ("DELETE", "", None),
        ("POST", "/exec", {"task": "worker/0", "command": ["id"]}),
    ]
    for method, tail, data in changes:
        assert people["bob"].ask(method, job + tail, data)[0] == (404 if hidden else 403), tail
        assert people["nobody"].ask(method, job + tail, data)[0] == 401, tail
    for tail in ("", "/config", "/events", "/why", "/attempts/0", ONE_TASK, ONE_TASK + "/stdout"):
        assert people["bob"].ask("GET", job + tail)[0] == (404 if hidden else 200), tail
        assert people["nobody"].ask("GET", job + tail)[0] == 401, tail
    assert ("secret" in people["bob"].ask("GET", "/api/v2/jobs")[1]) is not hidden
    assert ("secret" in people["bob"].ask("GET", "/api/v2/jobs?username=alice")[1]) is not hidden
    old = "/api/v1/user/alice/jobs"
    assert people["bob"].ask("GET", old + "/secret")[0] == (404 if hidden else 200)
    assert ("secret" in people["bob"].ask("GET", old)[1]) is not hidden
    assert people["admin"].ask("GET", job)[0] == 200
    assert people["alice"].ask("PUT", job + "/executionType", {"value": "STOP"})[0] == 202


def test_secrets_and_private_files_stay_inside(people: dict[str, Person]) -> None:
    alice = people["alice"]
    for tail in ("", "/config", "/events", "/why", ONE_TASK):
        assert "hunter2" not in alice.ask("GET", "/api/v2/jobs/alice~secret" + tail)[1]
    for name in PRIVATE:
        status, text = alice.ask("GET", f"/api/v2/jobs/alice~secret{ONE_TASK}/{name}")
        assert status == 404 and "hunter2" not in text, name
    for path in ("/..%2f..%2fserver.db", "/%2e%2e/server.db", "/etc/passwd"):
        status, text = alice.ask("GET", "/webhdfs/v1" + path + "?op=OPEN")
        assert status in (400, 403, 404) and "SQLite" not in text, path


def test_a_log_address_is_good_for_that_log_only(people: dict[str, Person]) -> None:
    status, text = people["alice"].ask("GET", f"/api/v2/jobs/alice~secret{ONE_TASK}")
    assert status == 200
    stdout = next(item["uri"] for item in json.loads(text)["locations"] if item["name"] == "stdout")
    nobody = people["nobody"]
    assert nobody.ask("GET", stdout)[0] == 200
    assert nobody.ask("GET", stdout.replace("/stdout?", "/stderr?"))[0] == 403
    assert nobody.ask("GET", stdout[:-1] + ("0" if stdout[-1] != "0" else "1"))[0] == 403
    expires = stdout.partition("token=")[2].partition(".")[0]
    assert nobody.ask("GET", stdout.replace(expires, str(int(expires) + 1000)))[0] == 403


ODD = [
    b"GET /api/v2/info HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n\tInjected: 1\r\nConnection: close\r\n\r\n",
    b"GET /api/v2/users/a%0d%0aX-Injected:%201 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"OPTIONS /api/v2/jobs HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Headers: a\x0bb\r\n"
    b"Connection: close\r\n\r\n",
    b"GARBAGE\r\n\r\n",
    b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\nConnection: close\r\n\r\n",
]


def test_odd_requests_leave_the_server_well(server: ServerProcess) -> None:
    for raw in ODD:
        host, _, port = urlsplit(server.uri).netloc.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(raw)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
                if b"\r\n\r\n" in answer and not raw.startswith(b"GET"):
                    break
        head = answer.partition(b"\r\n\r\n")[0].lower()
        assert head.startswith(b"http/1.1 ") and b"\r\nx-injected" not in head and b"\r\ninjected" not in head
        assert Person(server, None).ask("GET", "/healthz")[0] == 200
