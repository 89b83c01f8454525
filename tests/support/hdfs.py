"""A real HDFS: Hadoop's own NameNode and DataNode in one Java process, fetched with Maven once."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = "3.3.6"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>minihdfs</artifactId><version>1</version><packaging>jar</packaging>
<dependencies>{}</dependencies></project>
"""
# The shaded minicluster answers 404 to all of WebHDFS, so this is the one with its hundred small jars.
_PARTS = (
    ("org.apache.hadoop", "hadoop-minicluster", VERSION),
    ("org.mockito", "mockito-core", "2.28.2"),
)
_OPENED = ("java.lang", "java.util", "java.net", "java.nio", "java.io", "java.util.concurrent")


def jars() -> Path:
    """The folder with the jars, filled on first use and kept."""
    cache = Path(os.environ.get("OPENPAI_TEST_CACHE") or Path("/tmp") / f"openpaisdk-tests-{os.getuid()}")
    folder = cache / f"hdfs-{VERSION}-{zlib.crc32(repr(_PARTS).encode()):08x}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shape = (
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
        )
        (folder / "pom.xml").write_text(_POM.format("".join(shape.format(*part) for part in _PARTS)))
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"],
            cwd=folder, check=True, timeout=600, capture_output=True,
        )  # fmt: skip
        (folder / "complete").touch()
    return folder / "jars"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def hdfs_cluster(folder: Path) -> Iterator[str]:
    """The web address of a NameNode that ends with the block."""
    port = _free_port()
    command = ["java", "-Xmx512m"]
    command += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    command += [
        "-cp",
        f"{jars()}/*",
        f"-Dtest.build.data={folder}",
        "org.apache.hadoop.test.MiniDFSClusterManager",
    ]
    command += [
        "-format",
        "-datanodes",
        "1",
        "-httpport",
        str(port),
        "-D",
        f"hdfs.minidfs.basedir={folder}/dfs",
    ]
    command += ["-D", "dfs.permissions.enabled=false"]
    with (folder / "hdfs.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            _wait(f"http://127.0.0.1:{port}", process, folder / "hdfs.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(20)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    probe = f"{address}/webhdfs/v1/ready?op=CREATE&user.name=test&overwrite=true"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            # urllib does not follow a 307 of a PUT: getting one means that a DataNode is there to write to.
            urllib.request.urlopen(urllib.request.Request(probe, method="PUT"), timeout=5)
        except urllib.error.HTTPError as error:
            if error.code == 307:
                error.close()
                return
            error.close()
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"HDFS did not start:\n{log.read_text()[-3000:]}")
