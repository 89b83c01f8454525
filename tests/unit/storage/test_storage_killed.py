"""A transfer killed at random moments and repeated ends with equal files and no rest."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.file_server import serving

_PROGRAM = """
import sys
from openpaisdk.config import ClusterConfig
from openpaisdk.rest.calls import Calls
from openpaisdk.storage import WebHDFS, download, upload, webhdfs
webhdfs.SEGMENT = 1 << 20
store = WebHDFS.of_cluster(Calls(ClusterConfig("test", sys.argv[2], token="ann-token")))
if sys.argv[1] == "up":
    upload(store, sys.argv[3], "/user/ann/tree")
else:
    download(store, "/user/ann/tree", sys.argv[3])
"""


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_and_repeated_until_it_is_through(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source, back = tmp_path / "source", tmp_path / "back"
    source.mkdir()
    for number in range(40):
        (source / f"small{number}").write_bytes(os.urandom(chance.randrange(9000)))
    for number in range(3):
        (source / f"large{number}").write_bytes(os.urandom(6_000_000 + number))
    with serving(tmp_path / "data") as address:
        stored = tmp_path / "data/files/user/ann/tree"
        for direction, folder, result in (("up", source, stored), ("down", back, back)):
            for attempt in range(12):
                process = subprocess.Popen([sys.executable, "-c", _PROGRAM, direction, address, str(folder)])
                if attempt < 8:
                    try:
                        process.wait(chance.uniform(0.1, 0.5))
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
                    expected = tree(source)
                    for name, contents in tree(result).items() if result.exists() else ():
                        assert name.endswith(".opai-part") or contents == expected[name]
                elif process.wait(60) == 0:
                    break
                else:
                    # An append of the killed sender may still be ending on the server.
                    time.sleep(0.2)
            assert tree(result) == tree(source)
