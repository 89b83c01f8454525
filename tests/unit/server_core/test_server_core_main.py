"""The program itself: ready line, state file, lock, signals, a kill, TLS rules and the first password."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from openpaisdk.local import process
from support.servers import ServerProcess


@pytest.fixture
def real(tmp_path: Path):
    server = ServerProcess(tmp_path, "--launcher", "process").start()
    yield server
    server.stop()


def spec(name: str, command: str) -> dict:
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "none"}],
        "extras": {"openpaisdk": {"image": "default"}},
        "taskRoles": {
            "worker": {
                "instances": 1,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
                "commands": [command],
            }
        },
    }


def test_it_tells_where_it_is_and_who_may(real: ServerProcess):
    assert real.ready["uri"] == real.uri and real.ready["pid"] == real.process.pid
    assert set(real.ready["capacity"]) == {"cpu", "memory_mb", "gpu"}
    assert stat.S_IMODE(real.state_file.stat().st_mode) == 0o600
    assert abs(real.state["pid_started"] - psutil.Process(real.process.pid).create_time()) < 1
    assert real.state["pid_ticks"] == process.start_ticks(real.process.pid)
    assert real.token not in real.log()
    assert stat.S_IMODE((real.data_dir / "server.db").stat().st_mode) == 0o600


def test_one_server_for_one_data_folder(real: ServerProcess):
    done = run("--local", "--data-dir", str(real.data_dir))
    assert done.returncode == 4 and "another server uses" in done.stderr


def test_a_kill_loses_nothing(real: ServerProcess):
    cluster = real.cluster()
    release = real.folder / "release"
    wait = f"while [ ! -e {release} ]; do sleep 0.05; done"
    cluster.submit(spec("going-on", f"echo begun; {wait}; echo done; exit 7"))
    cluster.wait("going-on", until="running", timeout=30)
    real.kill()
    release.touch()
    real.start()
    cluster = real.cluster()
    detail = cluster.wait("going-on", timeout=30)["jobStatus"]
    assert (detail["state"], detail["retries"]) == ("FAILED", 0)
    assert detail["appExitMessages"]["runtime"]["originUserExitCode"] == 7
    assert cluster.read_log("going-on").splitlines() == ["begun", "done"]


def test_a_gentle_stop_leaves_tasks_running(real: ServerProcess):
    cluster = real.cluster()
    cluster.submit(spec("sleeper", "echo $$ > pid; exec sleep 300"))
    cluster.wait("sleeper", until="running", timeout=30)
    real.process.send_signal(signal.SIGTERM)
    assert real.process.wait(20) == 0
    assert not real.state_file.exists()
    left = [
        process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", "300"]
    ]
    assert left
    real.start()
    cluster = real.cluster()
    assert cluster.job("sleeper")["jobStatus"]["state"] == "RUNNING"
    cluster.stop("sleeper")
    assert cluster.wait("sleeper", timeout=60)["jobStatus"]["state"] == "STOPPED"


def test_idle_it_does_nothing(real: ServerProcess):
    real.cluster().jobs()
    process = psutil.Process(real.process.pid)
    before = process.num_ctx_switches().voluntary
    with pytest.raises(subprocess.TimeoutExpired):
        real.process.wait(1.5)
    assert process.num_ctx_switches().voluntary - before < 10


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "openpaisdk.server", *options], capture_output=True, text=True, timeout=60
    )


def test_beyond_loopback_it_wants_tls(tmp_path: Path):
    done = run("--host", "0.0.0.0", "--data-dir", str(tmp_path))
    assert done.returncode == 2 and "TLS" in done.stderr and "--insecure" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--virtual-cluster", "a=0.7", "--virtual-cluster", "b=0.7"), "add up to 1.4"),
        (("--virtual-cluster", "a-b=0.5"), "letters, digits and '_'"),
        (("--virtual-cluster", "a=2"), "the share from 0 to 1"),
        (("--quota", "ann"), "expected USER=LIMITS"),
        (("--quota", "ann=disk:3"), "'disk:3' is not a limit"),
        (("--port", "70000"), "--port 70000"),
        (("--fake-gpus", "-1"), "--fake-gpus -1"),
        (("--launcher", "none"), "no launcher is called 'none'"),
        (("--rate-limits", "x"), "'x' is not understood"),
    ],
)
def test_options_that_make_no_sense(options: tuple[str, ...], words: str, tmp_path: Path):
    done = run("--local", "--data-dir", str(tmp_path), *options)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_store_that_cannot_be_used(tmp_path: Path):
    (tmp_path / "server.db").write_bytes(b"no database" * 500)
    done = run("--local", "--data-dir", str(tmp_path))
    assert done.returncode == 2 and "server.db: file is not a database" in done.stderr
    assert "backup" in done.stderr and "Traceback" not in done.stderr


def test_a_store_of_a_newer_version(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "server.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    done = run("--local", "--data-dir", str(tmp_path))
    assert done.returncode == 2 and "newer version" in done.stderr and "upgrade openpaisdk" in done.stderr


def test_a_port_that_is_taken(real: ServerProcess, tmp_path: Path):
    port = real.uri.rpartition(":")[2]
    done = run("--port", port, "--data-dir", str(tmp_path / "other"))
    assert done.returncode == 2 and f"127.0.0.1:{port}" in done.stderr


def test_the_first_password_is_shown_once(tmp_path: Path):
    shown = []
    for _ in range(2):
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "openpaisdk.server", "--port", "0", "--data-dir", str(tmp_path)),
                *("--launcher", "process", "--ready-fd", str(writer)),
            ],
            pass_fds=[writer],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert json.loads(ready.readline())["pid"] == process.pid
        process.terminate()
        shown.append(process.communicate(timeout=30)[0])
    assert "admin" in shown[0] and "password" in shown[0]
    assert "password" not in shown[1]
