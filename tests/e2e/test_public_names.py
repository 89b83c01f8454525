"""The names that the first documents of this SDK promised are there and work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import openpaisdk
from support.servers import ServerProcess, end_processes_of


def test_names() -> None:
    from openpai.runtime import Runtime
    from openpaisdk import __cluster_config_file__, __install__, __version__
    from openpaisdk.core import Client, Cluster, OpenPAIClient, in_job_container
    from openpaisdk.engine import Engine
    from openpaisdk.job import Job

    assert Client is Cluster is OpenPAIClient
    assert __cluster_config_file__.endswith("clusters.json")
    assert __version__ in __install__
    assert not in_job_container()
    assert Runtime.from_env().place.kind == "local"
    assert Job.from_command("true").check() == []
    assert callable(Engine().process)
    for name in openpaisdk.__all__:
        assert getattr(openpaisdk, name) is not None


def test_in_job_container(monkeypatch: pytest.MonkeyPatch) -> None:
    from openpaisdk.core import in_job_container

    monkeypatch.setenv("PAI_CONTAINER_ID", "c1")
    assert in_job_container()


def test_the_documents_python_examples(tmp_path: Path, empty_home: Path) -> None:
    """Sections 3.2 and 3.3 of the SDK's first README, against a real server."""
    from openpaisdk.config import ClusterConfig, save_cluster

    server = ServerProcess(tmp_path / "server").start()
    try:
        save_cluster(
            ClusterConfig(alias="your-alias", pai_uri=server.uri, user=server.user, token=server.token)
        )
        program = """
from openpaisdk.engine import Engine
from openpaisdk.core import Client
from openpaisdk.job import Job
from openpaisdk import __cluster_config_file__

Job.from_command("echo hi", name="named").submit().result(timeout=60)
easy = Engine().process(['job', 'list', '--name', '-a', 'your-alias'])
client, config = Client.from_json(__cluster_config_file__, 'your-alias')
assert config["pai_uri"] if isinstance(config, dict) else config.pai_uri
assert easy == client.jobs(name_only=True) == ["named"], easy
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
    finally:
        server.stop()
        end_processes_of(empty_home)
