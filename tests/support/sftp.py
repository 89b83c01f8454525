"""A real SFTP server: OpenSSH on a loopback port, with keys of its own."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def sftp_server(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Address and options of a server that ends with the block."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "authorized").chmod(0o600)
    (folder / "files").mkdir()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\n"
        f"AuthorizedKeysFile {folder}/authorized\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"MaxStartups 100\nSubsystem sftp internal-sftp\n"
    )
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "config")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            _wait(port, process, folder / "log")
            options = {"username": getpass.getuser(), "key_filename": str(folder / "user"), "port": port}
            yield f"sftp://127.0.0.1{folder}/files", options
        finally:
            process.terminate()
            process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"sshd did not start:\n{log.read_text()}")
