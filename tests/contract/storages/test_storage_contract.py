"""One suite for every storage: local, our server, real HDFS, real SFTP."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.errors import ConflictError, NotFoundError, OpenPAIError
from openpaisdk.storage import BytesSource, FsspecStorage, LocalStorage, WebHDFS, download, upload
from openpaisdk.storage import webhdfs as webhdfs_module
from openpaisdk.storage.contract import FileSource, Source, part_name
from support.hdfs import hdfs_cluster
from support.servers import ServerProcess
from support.sftp import sftp_server


@pytest.fixture(
    scope="module",
    params=[
        "local",
        "server",
        pytest.param("hdfs", marks=[pytest.mark.real("hdfs"), pytest.mark.slow]),
        pytest.param("sftp", marks=pytest.mark.real("sftp")),
    ],
)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, str]]:
    """A storage and a folder in it that may be written."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "local":
        yield LocalStorage(str(folder)), ""
    elif request.param == "server":
        server = ServerProcess(folder, "--launcher", "process").start()
        try:
            store = WebHDFS.of_cluster(server.cluster())
            store.arrived = lambda path: (server.data_dir / "files" / path.strip("/")).stat().st_size
            yield store, f"/user/{server.user}/"
        finally:
            server.stop()
    elif request.param == "hdfs":
        with hdfs_cluster(folder) as address:
            yield WebHDFS.at(address, user="test"), "/tests/"
    else:
        with sftp_server(folder) as (address, options):
            yield FsspecStorage(address, **options), ""


@pytest.fixture
def store(opened: tuple[Any, str]) -> Any:
    return opened[0]


@pytest.fixture
def at(opened: tuple[Any, str], request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Paths in a folder of the test's own."""
    top = f"{opened[1]}{request.node.originalname}"
    return lambda path="": f"{top}/{path}".rstrip("/")


class Breaking(Source):
    """Contents whose sender dies after some bytes, as often as it is told."""

    def __init__(
        self, contents: bytes, key: str, after: int | None, arrived: Callable[[], int] | None = None
    ) -> None:
        self.size, self.key, self._contents, self._after = len(contents), key, contents, after
        self._arrived = arrived
        self.started_at: list[int] = []

    def blocks(self, offset: int, end: int) -> Iterator[bytes]:
        self.started_at.append(offset)
        while offset < end:
            if self._after is not None and offset >= self._after:
                self._let_arrive()
                raise ConnectionResetError("cut off")
            step = min(100_000, end - offset)
            yield self._contents[offset : offset + step]
            offset += step

    def _let_arrive(self) -> None:
        """A sender that dies at once takes along what it had only handed to the network."""
        deadline = time.monotonic() + 20
        while self._arrived is not None and self._arrived() < 400_000:
            assert time.monotonic() < deadline, "nothing arrived"
            time.sleep(0.01)


def content(store: Any, path: str, *more: int) -> bytes:
    return b"".join(store.read(path, *more))


def test_what_is_written_is_read(store: Any, at: Callable[[str], str]) -> None:
    for name, contents in {"a.bin": os.urandom(300_000), "empty": b"", "deep/er/b": b"x"}.items():
        store.write(at(name), BytesSource(contents))
        assert content(store, at(name)) == contents
        assert (store.stat(at(name)).kind, store.stat(at(name)).size) == ("file", len(contents))


def test_a_part_can_be_read(store: Any, at: Callable[[str], str]) -> None:
    store.write(at("a"), BytesSource(b"0123456789"))
    assert content(store, at("a"), 3) == b"3456789"
    assert content(store, at("a"), 3, 4) == b"3456"
    assert content(store, at("a"), 0, 0) == b""


def test_folders_are_listed_by_name(store: Any, at: Callable[[str], str]) -> None:
    store.write(at("b"), BytesSource(b"22"))
    store.write(at("a"), BytesSource(b"1"))
    store.mkdir(at("c"))
    assert [(entry.name, entry.kind, entry.size) for entry in store.list(at(""))] == [
        ("a", "file", 1), ("b", "file", 2), ("c", "folder", 0),
    ]  # fmt: skip
    assert [entry.name for entry in store.list(at("a"))] == ["a"]
    assert store.list(at("c")) == []


@pytest.mark.parametrize("name", ["a b", "ü-名", "50%&x=1+2", "#hash", "q?x", "semi;colon", "quo'te"])
def test_names_are_kept_as_they_are(store: Any, at: Callable[[str], str], name: str) -> None:
    store.write(at(f"names/{name}"), BytesSource(name.encode()), overwrite=True)
    assert name in [entry.name for entry in store.list(at("names"))]
    assert content(store, at(f"names/{name}")) == name.encode()
    assert store.remove(at(f"names/{name}")) is True


def test_a_name_in_use_is_refused_unless_told(store: Any, at: Callable[[str], str]) -> None:
    store.write(at("a"), BytesSource(b"old"))
    with pytest.raises(ConflictError, match="already exists"):
        store.write(at("a"), BytesSource(b"new"))
    assert content(store, at("a")) == b"old"
    store.write(at("a"), BytesSource(b"newer"), overwrite=True)
    assert content(store, at("a")) == b"newer"


def test_a_folder_is_not_overwritten_by_a_file(store: Any, at: Callable[[str], str]) -> None:
    store.write(at("d/x"), BytesSource(b"1"))
    with pytest.raises(OpenPAIError):
        store.write(at("d"), BytesSource(b"1"), overwrite=True)
    assert content(store, at("d/x")) == b"1"


def test_what_is_not_there_is_said(store: Any, at: Callable[[str], str]) -> None:
    for call in (store.stat, store.list, lambda path: content(store, path)):
        with pytest.raises(NotFoundError):
            call(at("gone"))
    assert store.remove(at("gone")) is False


def test_folders_are_made_twice_and_removed_with_care(store: Any, at: Callable[[str], str]) -> None:
    store.mkdir(at("a/b"))
    store.mkdir(at("a/b"))
    store.write(at("a/b/c"), BytesSource(b"1"))
    with pytest.raises(ConflictError):
        store.remove(at("a"))
    assert store.remove(at("a"), recursive=True) is True
    with pytest.raises(NotFoundError):
        store.stat(at("a"))


def test_a_broken_transfer_leaves_no_file_and_goes_on(
    store: Any, at: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_module, "SEGMENT", 400_000)
    contents = os.urandom(1_500_000)
    look = getattr(store, "arrived", None)
    arrived = (lambda: look(part_name(at("a"), "key"))) if look else None
    with pytest.raises((OpenPAIError, ConnectionResetError)):
        store.write(at("a"), Breaking(contents, "key", 900_000, arrived))
    with pytest.raises(NotFoundError):
        store.stat(at("a"))
    again = Breaking(contents, "key", None)
    store.write(at("a"), again)
    assert content(store, at("a")) == contents
    assert max(again.started_at) >= 400_000
    assert [entry.name for entry in store.list(at(""))] == ["a"]


def test_the_part_of_other_contents_is_not_continued(
    store: Any, at: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_module, "SEGMENT", 400_000)
    with pytest.raises((OpenPAIError, ConnectionResetError)):
        store.write(at("a"), Breaking(os.urandom(1_000_000), "key", 900_000))
    contents = os.urandom(1_000_000)
    store.write(at("a"), Breaking(contents, "key", None))
    assert content(store, at("a")) == contents


def make_tree(root: Path) -> dict[str, bytes]:
    files = {f"d{i % 3}/f{i}.txt": os.urandom(500 + i) for i in range(30)}
    files["big.bin"] = os.urandom(700_000)
    files["empty"] = b""
    for name, contents in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(contents)
    return files


def read_tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_trees_go_there_and_back(store: Any, at: Callable[[str], str], tmp_path: Path) -> None:
    files = make_tree(tmp_path / "here")
    size = sum(map(len, files.values()))
    sent = upload(store, str(tmp_path / "here"), at("t"))
    assert sent == {"files": 32, "bytes": size, "skipped": 0, "copied": 32}
    fetched = download(store, at("t"), str(tmp_path / "back"))
    assert (fetched["copied"], fetched["bytes"]) == (32, size)
    assert read_tree(tmp_path / "back") == files
    assert upload(store, str(tmp_path / "here"), at("t"))["copied"] == 0
    assert download(store, at("t"), str(tmp_path / "back"))["copied"] == 0


def test_a_changed_file_needs_overwrite(store: Any, at: Callable[[str], str], tmp_path: Path) -> None:
    make_tree(tmp_path / "here")
    upload(store, str(tmp_path / "here"), at("t"))
    (tmp_path / "here/d1/f1.txt").write_bytes(b"changed")
    with pytest.raises(ConflictError, match=r"f1\.txt already exists"):
        upload(store, str(tmp_path / "here"), at("t"))
    assert upload(store, str(tmp_path / "here"), at("t"), overwrite=True)["copied"] == 1
    (tmp_path / "back").mkdir()
    (tmp_path / "back/empty").write_bytes(b"mine")
    with pytest.raises(ConflictError, match="empty already exists"):
        download(store, at("t"), str(tmp_path / "back"))
    assert (tmp_path / "back/empty").read_bytes() == b"mine"


def test_a_download_goes_on_where_it_stopped(store: Any, at: Callable[[str], str], tmp_path: Path) -> None:
    contents = os.urandom(900_000)
    store.write(at("a"), BytesSource(contents))
    read = store.read
    offsets: list[int] = []

    def cut_later(path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        offsets.append(offset)
        if len(offsets) > 1:
            yield from read(path, offset, length)
            return
        yield contents[:300_000]
        raise ConnectionResetError("cut off")

    store.read = cut_later
    try:
        with pytest.raises((OpenPAIError, ConnectionResetError)):
            download(store, at("a"), str(tmp_path / "a"))
        assert not (tmp_path / "a").exists()
        download(store, at("a"), str(tmp_path / "a"))
    finally:
        del store.read
    assert (tmp_path / "a").read_bytes() == contents
    assert offsets[:2] == [0, 300_000]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_single_file_goes_into_a_folder_that_is_there(
    store: Any, at: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(b"1")
    store.mkdir(at("d"))
    upload(store, str(tmp_path / "a.txt"), at("d"))
    assert content(store, at("d/a.txt")) == b"1"
    (tmp_path / "back").mkdir()
    download(store, at("d/a.txt"), str(tmp_path / "back"))
    assert (tmp_path / "back/a.txt").read_bytes() == b"1"


def test_a_local_file_that_is_missing_is_named(store: Any, at: Callable[[str], str], tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing-here"):
        upload(store, str(tmp_path / "nothing-here"), at("x"))
    with pytest.raises(NotFoundError):
        FileSource(str(tmp_path / "nothing-here"))


def test_several_threads_write_at_once(store: Any, at: Callable[[str], str]) -> None:
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            store.write(at(f"{number}"), BytesSource(bytes([number]) * 1000))
        except BaseException as error:
            problems.append(error)

    store.mkdir(at(""))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.list(at(""))) == 8
