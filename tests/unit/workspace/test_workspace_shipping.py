"""Code sent by content, and laid out again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from openpaisdk.config import ClusterConfig
from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.rest.calls import Calls
from openpaisdk.server.files import lay_out
from openpaisdk.workspace import hashes, ship_source
from support.file_server import serving


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def address(data: Path) -> Iterator[str]:
    with serving(data) as found:
        yield found


@pytest.fixture
def cluster(address: str) -> Calls:
    return Calls(ClusterConfig("test", address, token="ann-token"))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    root = tmp_path / "code"
    (root / "lib").mkdir(parents=True)
    (root / "train.py").write_text("print('hi')\n")
    (root / "run.sh").write_text("echo hi\n")
    (root / "run.sh").chmod(0o755)
    (root / "lib/big.bin").write_bytes(os.urandom(700_000))
    (root / "lib/nothing.txt").touch()
    (root / "main.py").symlink_to("train.py")
    (root / "logs").mkdir()
    for path in root.rglob("*"):
        os.utime(path, ns=(1_700_000_000_123_456_789,) * 2, follow_symlinks=False)
    return root


def tree(root: Path) -> dict[str, object]:
    return {
        str(path.relative_to(root)): path.readlink() if path.is_symlink()
        else path.is_dir() or (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(root.rglob("*"))
    }  # fmt: skip


def test_a_tree_arrives_as_it_was(cluster: Calls, code: Path, data: Path, tmp_path: Path) -> None:
    shipped = ship_source(cluster, cwd=str(code))
    assert (shipped["files"], shipped["bytes"], shipped["sent"]) == (4, 700_020, 700_020)
    assert lay_out(data / "files", shipped["manifest"], tmp_path / "work", user="ann") == 4
    assert tree(tmp_path / "work") == tree(code)
    assert lay_out(data / "files", shipped["manifest"], tmp_path / "work", user="ann") == 4
    assert tree(tmp_path / "work") == tree(code)


def test_only_what_changed_is_sent(cluster: Calls, code: Path) -> None:
    first = ship_source(cluster, cwd=str(code))
    assert ship_source(cluster, cwd=str(code))["sent"] == 0
    (code / "train.py").write_text("print('other')\n")
    again = ship_source(cluster, cwd=str(code))
    assert again["sent"] == 15
    assert again["manifest"] != first["manifest"]


def test_unchanged_files_are_not_read_again(
    cluster: Calls, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.time_ns() + 10_000_000_000
    monkeypatch.setattr(hashes.time, "time_ns", lambda: moment)
    ship_source(cluster, cwd=str(code))
    read: list[str] = []
    monkeypatch.setattr(hashes, "hash_file", lambda path: read.append(path) or "0" * 64)
    assert ship_source(cluster, cwd=str(code))["sent"] == 0
    assert read == []


def test_a_file_changed_a_moment_ago_is_not_trusted(cluster: Calls, code: Path) -> None:
    (code / "train.py").write_text("a = 1\n")
    first = ship_source(cluster, cwd=str(code))
    status = (code / "train.py").stat()
    with (code / "train.py").open("r+") as file:
        file.write("a = 2\n")
    os.utime(code / "train.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ship_source(cluster, cwd=str(code))["manifest"] != first["manifest"]


def test_tasks_cannot_change_what_is_stored(cluster: Calls, code: Path, data: Path, tmp_path: Path) -> None:
    shipped = ship_source(cluster, cwd=str(code))
    lay_out(data / "files", shipped["manifest"], tmp_path / "one", user="ann")
    with (tmp_path / "one/lib/big.bin").open("r+b") as file:
        file.write(b"changed")
    lay_out(data / "files", shipped["manifest"], tmp_path / "two", user="ann")
    assert (tmp_path / "two/lib/big.bin").read_bytes() == (code / "lib/big.bin").read_bytes()


def test_code_of_others_is_not_to_be_had(
    cluster: Calls, code: Path, data: Path, tmp_path: Path, address: str
) -> None:
    shipped = ship_source(cluster, cwd=str(code))
    with pytest.raises(NotFoundError, match="is not on this server"):
        lay_out(data / "files", shipped["manifest"], tmp_path / "work", user="bob")
    bob = Calls(ClusterConfig("test", address, token="bob-token"))
    missing = bob.request("POST", "/api/v2/blobs/missing", body=json.dumps([shipped["manifest"]]).encode())
    assert missing.json() == [shipped["manifest"]]


def test_a_file_that_changes_while_it_is_sent_is_looked_at_again(
    cluster: Calls, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_hash = hashes.hash_file
    lies = iter(["1" * 64])
    monkeypatch.setattr(hashes, "hash_file", lambda path: next(lies, None) or true_hash(path))
    (code / "train.py").write_text("never seen before\n")
    os.utime(code / "train.py")
    assert ship_source(cluster, cwd=str(code))["manifest"]


def test_progress_and_plan_are_told(cluster: Calls, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(os.urandom(1_000_000))
    (tmp_path / "b.bin").write_bytes(os.urandom(1_000))
    plans, steps = [], []
    ship_source(cluster, cwd=str(tmp_path), on_plan=plans.append, on_sent=lambda *step: steps.append(step))
    assert [(plan.files, plan.bytes) for plan in plans] == [(2, 1_001_000)]
    assert steps == [(1_000_000, 1_001_000), (1_001_000, 1_001_000)]


def test_an_unreadable_file_is_named(cluster: Calls, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *rest: object, **more: object) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(hashes, "open", refuse, raising=False)
    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        ship_source(cluster, cwd=str(code))
