"""What every test shares: an empty home, real parts that are loud when missing, no process left behind."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Part -> programs that must be there. A missing part skips with its name, and fails where CI is set.
REAL_PARTS = {
    "podman": ("podman",),
    "node": ("node", "npm"),
    "hdfs": ("java", "mvn"),
    "sftp": ("/usr/sbin/sshd", "ssh-keygen"),
    "curl": ("curl",),
    "openssl": ("openssl",),
    "chromium": ("chromium",),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("real"):
        missing = [program for program in REAL_PARTS[mark.args[0]] if shutil.which(program) is None]
        if not missing:
            continue
        message = (
            f"real part {mark.args[0]!r} is missing: no {', '.join(missing)} (scripts/real-parts installs it)"
        )
        if os.environ.get("CI"):
            pytest.fail(message, pytrace=False)
        pytest.skip(message)


@pytest.fixture(autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test has a home of its own, so that nothing of the person running it is read or written."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPENPAI_HOME", str(home / ".openpai"))
    for name in [name for name in os.environ if name.startswith(("OPAI_", "PAI_"))]:
        monkeypatch.delenv(name)
    yield home
    stop_local_server(home / ".openpai")


def stop_local_server(openpai_home: Path) -> None:
    """Stops the embedded server that a test may have started in this home, with its tasks."""
    if not (openpai_home / "local").exists():
        return
    from support.servers import wait_for_death

    for process in psutil.process_iter(["pid"]):
        try:
            if process.pid != os.getpid() and str(openpai_home) in " ".join(process.cmdline()):
                process.kill()
                wait_for_death(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fails the run when a process that mentions this run's folders outlives it."""
    folder = str(tmp_path_factory.getbasetemp())
    yield
    left = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        if process.pid != os.getpid() and folder in " ".join(process.info["cmdline"] or []):
            left.append(f"{process.pid} {' '.join(process.info['cmdline'])[:120]}")
            process.kill()
    assert not left, "processes left running:\n" + "\n".join(left)
