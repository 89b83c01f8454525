"""Moving bytes: 1 GiB against curl and nginx, 10,000 small files against `hdfs`, unchanged code again."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import report, seconds

from support.servers import ServerProcess

NGINX = """daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1;
events {{}}
http {{ access_log off; sendfile on; client_max_body_size 0; client_body_temp_path {root}/body;
  proxy_temp_path {root}/p; fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
  server {{ listen 127.0.0.1:{port}; root {root}/www; dav_methods PUT; }} }}
"""


@contextmanager
def nginx(folder: Path) -> Iterator[str]:
    """The address of an nginx that serves and takes files."""
    (folder / "www").mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "www").chmod(0o777)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    user = "user root;\n" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(user + NGINX.format(root=folder, port=port))
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError((folder / "error.log").read_text()) from None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def store_of(server: ServerProcess):  # type: ignore[no-untyped-def]
    from openpaisdk.core import Cluster
    from openpaisdk.storage import WebHDFS

    cluster = Cluster(pai_uri=server.uri, user=server.user, token=server.token)
    return cluster, WebHDFS.of_cluster(cluster)


def calm(folder: Path, size: int) -> None:
    """Nothing left to write to the disk, and memory for a file of that size in the machine's hands.

    A virtual machine has to ask its host for memory that it has not used lately, which takes longer than the
    transfer and falls on whoever comes first.
    """
    os.sync()
    block = bytes(1 << 20)
    with (folder / "calm").open("wb") as file:
        for _ in range(size >> 20):
            file.write(block)
    (folder / "calm").unlink()


def server_peak(server: ServerProcess) -> float:
    """The most memory that the server has used so far, in MB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def one_large_file(server: ServerProcess, folder: Path, size: int, rounds: int) -> None:
    from openpaisdk.storage import download, upload

    _, store = store_of(server)
    source, home = folder / "large", f"/user/{server.user}"
    with source.open("wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    taken: dict[str, list[float]] = {name: [] for name in ("ours up", "curl up", "ours down", "curl down")}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    at_first = server_peak(server)
    with nginx(folder / "nginx") as other:
        back = folder / "back"
        steps = {
            "ours up": lambda: upload(store, str(source), f"{home}/large", overwrite=True),
            "curl up": lambda: subprocess.run(["curl", "-sf", "-T", source, f"{other}/large"], check=True),
            "ours down": lambda: download(store, f"{home}/large", str(back)),
            "curl down": lambda: subprocess.run(["curl", "-sf", "-o", back, f"{other}/large"], check=True),
        }
        for number in range(rounds):
            pairs = [("ours up", "curl up"), ("ours down", "curl down")]
            for name in (name for pair in pairs for name in (pair if number % 2 else pair[::-1])):
                calm(folder, size)
                taken[name].append(seconds(steps[name]))
                back.unlink(missing_ok=True)
            store.remove(f"{home}/large")
            (folder / "nginx/www/large").unlink()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    middle = {name: statistics.median(times) for name, times in taken.items()}
    for way in ("up", "down"):
        ratio = middle[f"curl {way}"] / middle[f"ours {way}"]
        rate = (size >> 20) / middle[f"ours {way}"]
        value = f"{rate:.0f} MiB/s, {ratio:.2f} of curl"
        report(f"{size >> 20} MiB {way}load against curl to nginx", value, ">= 0.50", ratio >= 0.5)
    report("memory of the client while it moves them", f"{grown:+.0f} MB", "<= 60 MB", grown <= 60)
    grown = server_peak(server) - at_first
    report("memory of the server while it moves them", f"{grown:+.0f} MB", "<= 60 MB", grown <= 60)


def many_small_files(server: ServerProcess, folder: Path, count: int) -> None:
    import hdfs

    from openpaisdk.storage import download, upload

    _, store = store_of(server)
    source, home = folder / "small", f"/user/{server.user}"
    for number in range(count):
        place = source / f"d{number % 100}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}").write_bytes(os.urandom(4096))
    package = hdfs.TokenClient(server.uri, server.token)
    ours = seconds(lambda: upload(store, str(source), f"{home}/ours"))
    theirs = seconds(lambda: package.upload(f"{home}/theirs", str(source), n_threads=1))
    report(
        f"{count:,} files of 4 kB up",
        f"{ours:.2f} s, {theirs / ours:.1f}x faster",
        ">= 5x",
        theirs >= 5 * ours,
    )
    ours = seconds(lambda: download(store, f"{home}/ours", str(folder / "ours")))
    theirs = seconds(lambda: package.download(f"{home}/theirs", str(folder / "theirs"), n_threads=1))
    report(
        f"{count:,} files of 4 kB down",
        f"{ours:.2f} s, {theirs / ours:.1f}x faster",
        ">= 5x",
        theirs >= 5 * ours,
    )


def unchanged_code(server: ServerProcess, folder: Path) -> None:
    from openpaisdk.workspace import ship_source

    cluster, _ = store_of(server)
    here = str(folder / "small")
    first = seconds(lambda: ship_source(cluster, cwd=here))
    again = statistics.median(seconds(lambda: ship_source(cluster, cwd=here)) for _ in range(5))
    report("code of 10,000 files, first time", f"{first:.2f} s", "-", True)
    report("the same code again", f"{again * 1000:.0f} ms", "< 1 s", again < 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opai-bench-") as name:
        folder = Path(name)
        os.environ.update(HOME=name, OPENPAI_HOME=f"{name}/.openpai")
        server = ServerProcess(folder / "server").start()
        try:
            if shutil.which("nginx") and shutil.which("curl"):
                one_large_file(server, folder, args.mib << 20, args.rounds)
            else:
                print("nginx and curl are not here: large files are not compared")
            many_small_files(server, folder, args.files)
            unchanged_code(server, folder)
        finally:
            server.process.terminate()
            server.process.wait(20)


if __name__ == "__main__":
    main()
