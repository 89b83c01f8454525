"""Random requests from the server's own OpenAPI description: no failure, and no answer it does not describe."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_random_requests_find_no_failure(server: ServerProcess, tmp_path: Path) -> None:
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", server.uri + "/api/v2/openapi.json"),
        *("--header", f"Authorization: Bearer {server.token}", "--checks", CHECKS),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", "15", "--seed", "1"),
        *("--exclude-path-regex", LEFT_OUT, "--request-timeout", "20"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in server.log()
