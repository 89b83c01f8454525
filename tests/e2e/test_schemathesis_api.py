"""Random requests from the server's own OpenAPI description: no failure, no answer it does not describe."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers import ServerProcess

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Streams and long waits answer when something happens; the others end the session or the server under test.
LEFT_OUT = r"/(follow|wait|output|logout)$|/server/stop$"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "server", "--launcher", "process").start()
    yield process
    process.stop()


JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: image, uri: "python:3"}}]
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["{command}"]
"""


def run(server: ServerProcess, folder: Path, *options: str) -> None:
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), *options, "run"),
        *(server.uri + "/api/v2/openapi.json", "--header", f"Authorization: Bearer {server.token}"),
        *("--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "15", "--seed", "1"),
        *("--exclude-path-regex", LEFT_OUT, "--request-timeout", "20"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in server.log()


def submit(server: ServerProcess, name: str, command: str) -> str:
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "text/yaml"}
    body = JOB.format(name=name, command=command).encode()
    request = urllib.request.Request(server.uri + "/api/v2/jobs", body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 202
    return f"{server.user}~{name}"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_random_requests_find_no_failure(server: ServerProcess, tmp_path: Path) -> None:
    run(server, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_random_requests_about_real_jobs_find_no_failure(server: ServerProcess, tmp_path: Path) -> None:
    job = submit(server, "long", "echo hi; sleep 300")
    known = {"job": job, "attempt": "0", "role": "worker", "index": "0", "task_attempt": "0", "vc": "default"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in known.items()]
    (tmp_path / "known.toml").write_text("[parameters]\n" + "\n".join(lines) + "\n")
    run(server, tmp_path, "--config-file", str(tmp_path / "known.toml"))
