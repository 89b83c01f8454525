"""A job that can never fit: refused for our client, which asks for that; it waits for OpenPAI's clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from openpaisdk.errors import QuotaError
from openpaisdk.job import Job
from support.servers import ServerProcess


def test_unfit_jobs(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "server", "--launcher", "process").start()
    try:
        cluster = server.cluster()
        huge = Job.from_command("true", name="huge", gpu=99)
        with pytest.raises(QuotaError, match="asks for 99 GPUs, this cluster has"):
            huge.submit(cluster)
        answer = cluster.request(
            "POST", "/api/v2/jobs", headers={"content-type": "text/yaml"}, body=huge.to_json().encode()
        )
        assert answer.status == 202
        # It stands in nobody's way, and says why it stands.
        assert Job.from_command("true").submit(cluster).result(timeout=30)["state"] == "SUCCEEDED"
        assert cluster.job("huge")["jobStatus"]["state"] == "WAITING"
        assert "99 GPUs" in cluster.why("huge")["text"]
        # A restarted server keeps it so.
        server.kill()
        server.start()
        cluster = server.cluster()
        assert Job.from_command("true").submit(cluster).result(timeout=30)["state"] == "SUCCEEDED"
        cluster.stop("huge")
        assert cluster.wait("huge", timeout=30)["jobStatus"]["state"] == "STOPPED"
    finally:
        server.stop()
