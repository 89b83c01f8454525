"""The server's files through WebHDFS: with the public packages, and with what ought to be refused."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import fsspec
import hdfs
import pytest
import requests

from openpaisdk.server.files.usage import Quota
from support.file_server import serving


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def address(data: Path) -> Iterator[str]:
    with serving(data) as found:
        yield found


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as found:
        found.headers["Authorization"] = "Bearer ann-token"
        yield found


@pytest.fixture
def client(address: str) -> Iterator[hdfs.Client]:
    found = hdfs.TokenClient(address, "ann-token")
    yield found
    found._session.close()


def url(address: str, path: str, op: str, **options: object) -> str:
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return f"{address}/webhdfs/v1{path}?op={op}{more}"


def exception(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["RemoteException"]["exception"]


def test_the_hdfs_package_lists_writes_appends_reads_renames_and_deletes(client: hdfs.Client) -> None:
    client.write("pkg/a.txt", b"hello")
    client.write("pkg/a.txt", b" world", append=True)
    with client.read("pkg/a.txt") as reader:
        assert reader.read() == b"hello world"
    with client.read("pkg/a.txt", offset=6, length=3) as reader:
        assert reader.read() == b"wor"
    assert client.list("pkg") == ["a.txt"]
    client.rename("pkg/a.txt", "pkg/b.txt")
    assert client.status("pkg/b.txt")["length"] == 11
    assert client.content("pkg")["fileCount"] == 1
    assert client.status("pkg/a.txt", strict=False) is None
    with pytest.raises(hdfs.HdfsError, match="already exists"):
        client.write("pkg/b.txt", b"x")
    client.makedirs("pkg/deep/er", permission="700")
    client.set_permission("pkg/b.txt", "600")
    client.set_times("pkg/b.txt", modification_time=1_700_000_000_000)
    assert client.status("pkg/b.txt")["modificationTime"] == 1_700_000_000_000
    assert client.delete("pkg", recursive=True) is True
    assert client.delete("pkg") is False


def test_the_hdfs_package_moves_trees(client: hdfs.Client, tmp_path: Path) -> None:
    (tmp_path / "up/in").mkdir(parents=True)
    (tmp_path / "up/in/a").write_bytes(os.urandom(200_000))
    client.upload("tree", str(tmp_path / "up"), n_threads=2)
    client.download("tree", str(tmp_path / "down"))
    assert (tmp_path / "down/in/a").read_bytes() == (tmp_path / "up/in/a").read_bytes()


def test_fsspec_works(address: str) -> None:
    place = urlsplit(address)
    found = fsspec.filesystem("webhdfs", host=place.hostname, port=place.port, token="ann-token")
    with found.open("/user/ann/fs.bin", "wb") as file:
        file.write(b"q" * 100_000)
    assert found.cat("/user/ann/fs.bin") == b"q" * 100_000
    assert "/user/ann/fs.bin" in found.ls("/user/ann")
    found.rm("/user/ann/fs.bin")
    found.session.close()


def test_contents_go_in_two_steps_as_hadoop_does(address: str, session: requests.Session) -> None:
    first = session.put(url(address, "/user/ann/two", "CREATE"), allow_redirects=False)
    assert first.status_code == 307
    assert session.put(first.headers["Location"], data=b"12").status_code == 201
    told = session.put(url(address, "/user/ann/three", "CREATE", noredirect="true")).json()["Location"]
    assert session.put(told, data=b"123").status_code == 201
    assert session.get(url(address, "/user/ann/three", "OPEN")).content == b"123"
    assert session.get(url(address, "/user/ann/three", "OPEN", offset=4)).status_code == 400
    assert session.get(url(address, "/user/ann/three", "OPEN", offset=3)).content == b""


@pytest.mark.parametrize(
    ("headers", "options"),
    [({}, ""), ({}, "&user.name=ann"), ({"Authorization": "Bearer forged"}, ""), ({}, "&delegation=forged")],
)
def test_without_a_token_nothing_is_shown(address: str, headers: dict[str, str], options: str) -> None:
    answer = requests.get(url(address, "/user/ann", "LISTSTATUS") + options, headers=headers)
    assert exception(answer) == (401, "SecurityException")


def test_homes_of_others_are_closed_except_to_admins(
    address: str, session: requests.Session, data: Path
) -> None:
    home = data / "files/user/bob"
    home.mkdir(exist_ok=True)
    (home / "secret").write_text("x")
    for op in ("OPEN", "GETFILESTATUS", "GETFILECHECKSUM"):
        assert exception(session.get(url(address, "/user/bob/secret", op)))[0] == 403
    assert session.put(url(address, "/user/bob/new", "CREATE", data="true"), data=b"x").status_code == 403
    assert session.delete(url(address, "/user/bob/secret", "DELETE")).status_code == 403
    moved = session.put(url(address, "/user/ann", "RENAME", destination="/user/bob/x"))
    assert moved.status_code == 403
    assert exception(session.get(url(address, "/user/ann", "LISTSTATUS", **{"user.name": "bob"})))[0] == 403
    root = {"Authorization": "Bearer root-token"}
    assert requests.get(url(address, "/user/bob/secret", "OPEN"), headers=root).content == b"x"
    names = session.get(url(address, "/user", "LISTSTATUS")).json()["FileStatuses"]["FileStatus"]
    assert [item["pathSuffix"] for item in names] == ["ann"]


@pytest.mark.parametrize(
    "path", ["/user/ann/../bob/x", "/user/ann/%2e%2e/bob/x", "/etc/passwd", "/blobs", "/staging/x"]
)
def test_paths_that_climb_or_leave_are_refused(address: str, path: str) -> None:
    # By hand, because requests tidies paths before it sends them.
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), 10) as connection:
        head = f"GET /webhdfs/v1{path}?op=OPEN&delegation=ann-token HTTP/1.0\r\n\r\n"
        connection.sendall(head.encode())
        answer = b""
        while block := connection.recv(65536):
            answer += block
    assert int(answer.split()[1]) in (400, 403, 404)
    assert b"RemoteException" in answer


def test_links_do_not_escape(address: str, session: requests.Session, data: Path, tmp_path: Path) -> None:
    home = data / "files/user/ann"
    home.mkdir(exist_ok=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (home / "out").symlink_to(tmp_path / "outside")
    (home / "file").symlink_to(tmp_path / "outside/secret")
    (home / "real").write_text("mine")
    (home / "inner").symlink_to("real")
    assert exception(session.get(url(address, "/user/ann/out/secret", "OPEN")))[0] == 403
    assert exception(session.get(url(address, "/user/ann/file", "OPEN")))[0] == 403
    put = session.put(url(address, "/user/ann/out/new", "CREATE", data="true", overwrite="true"), data=b"x")
    assert put.status_code == 403
    assert session.get(url(address, "/user/ann/inner", "OPEN")).content == b"mine"
    found = session.get(url(address, "/user/ann", "LISTSTATUS")).json()["FileStatuses"]["FileStatus"]
    kinds = {item["pathSuffix"]: item["type"] for item in found}
    assert (kinds["out"], kinds["file"], kinds["inner"]) == ("SYMLINK", "SYMLINK", "FILE")
    assert session.delete(url(address, "/user/ann/out", "DELETE", recursive="true")).json()["boolean"] is True
    assert (tmp_path / "outside/secret").read_text() == "secret"


def test_a_sender_that_goes_away_leaves_nothing(address: str, session: requests.Session, data: Path) -> None:
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), 10) as connection:
        head = (
            "PUT /webhdfs/v1/user/ann/half?op=CREATE&data=true&delegation=ann-token HTTP/1.1\r\nHost: x\r\n"
        )
        connection.sendall(f"{head}Content-Length: 5000000\r\n\r\n".encode() + bytes(2_000_000))
    for _ in range(100):
        # Ends when the server has noticed; every request is a turn of its loop.
        answer = session.get(url(address, "/user/ann/half", "GETFILESTATUS"))
        if not list((data / "files/staging").iterdir()):
            break
    assert exception(answer) == (404, "FileNotFoundException")
    assert list((data / "files/staging").iterdir()) == []


def test_the_shared_area_is_everybodys(address: str, session: requests.Session) -> None:
    assert session.put(url(address, "/shared/all.txt", "CREATE", data="true"), data=b"hi").status_code == 201
    bob = {"Authorization": "Bearer bob-token"}
    assert requests.get(url(address, "/shared/all.txt", "OPEN"), headers=bob).content == b"hi"
    assert session.delete(url(address, "/shared", "DELETE", recursive="true")).status_code == 403
    assert session.delete(url(address, "/user/ann", "DELETE", recursive="true")).status_code == 403


def frame(name: str, contents: bytes) -> bytes:
    return struct.pack(">IQ", len(name.encode()), len(contents)) + name.encode() + contents


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "x\0y"])
def test_packs_cannot_name_paths_outside(address: str, session: requests.Session, name: str) -> None:
    answer = session.post(url(address, "/user/ann/packs", "UNPACK"), data=frame(name, b"1"))
    assert exception(answer) == (400, "IllegalArgumentException")


def test_damaged_packs_are_refused(address: str, session: requests.Session) -> None:
    for body in (
        b"abc",
        frame("a", b"12345")[:-2],
        struct.pack(">IQ", 1 << 31, 1),
        frame("a", b"1") + b"\xff",
    ):
        answer = session.post(url(address, "/user/ann/damaged", "UNPACK", overwrite="true"), data=body)
        assert answer.status_code == 400
    assert session.post(url(address, "/user/ann", "PACK"), data=b"{}").status_code == 400


def test_unknown_operations_and_options_are_named(address: str, session: requests.Session) -> None:
    answer = session.get(url(address, "/user/ann", "CONCAT"))
    assert answer.status_code == 400
    assert "LISTSTATUS" in answer.json()["RemoteException"]["message"]
    assert session.get(url(address, "/user/ann", "OPEN", offset="x")).status_code == 400
    assert session.put(url(address, "/user/ann/x", "RENAME")).status_code == 400
    assert session.get(url(address, "/user/ann/" + "n" * 300, "GETFILESTATUS")).status_code == 400


def test_a_quota_is_kept(tmp_path: Path) -> None:
    with serving(tmp_path, file_quota_mb=1) as address, requests.Session() as session:
        session.headers["Authorization"] = "Bearer ann-token"
        first = session.put(url(address, "/user/ann/a", "CREATE", data="true"), data=bytes(900_000))
        assert first.status_code == 201
        too_much = session.put(url(address, "/user/ann/b", "CREATE", data="true"), data=bytes(900_000))
        assert exception(too_much) == (403, "DSQuotaExceededException")
        assert exception(session.put(url(address, "/user/ann/b", "CREATE", size=900_000)))[0] == 403
        grown = session.post(url(address, "/user/ann/a", "APPEND", data="true"), data=bytes(900_000))
        assert exception(grown)[0] == 403
        assert session.delete(url(address, "/user/ann/a", "DELETE")).json()["boolean"] is True
        assert (
            session.put(url(address, "/user/ann/b", "CREATE", data="true"), data=bytes(9)).status_code == 201
        )


def test_the_disk_is_counted_again_after_a_minute(tmp_path: Path) -> None:
    now = [0.0]
    quota = Quota(100, clock=lambda: now[0])
    assert quota.used(str(tmp_path)) == 0
    (tmp_path / "written-by-a-task").write_bytes(bytes(80))
    assert quota.used(str(tmp_path)) == 0
    now[0] = 61
    assert quota.used(str(tmp_path)) == 80


def test_checksums_follow_the_contents(address: str, session: requests.Session, data: Path) -> None:
    from hashlib import sha256

    session.put(url(address, "/user/ann/sum", "CREATE", data="true"), data=b"abc")
    session.post(url(address, "/user/ann/sum", "APPEND", data="true"), data=b"def")
    said = session.get(url(address, "/user/ann/sum", "GETFILECHECKSUM")).json()["FileChecksum"]
    assert said["bytes"] == sha256(b"abcdef").hexdigest()
    (data / "files/user/ann/sum").write_bytes(b"changed by a task")
    said = session.get(url(address, "/user/ann/sum", "GETFILECHECKSUM")).json()["FileChecksum"]
    assert said["bytes"] == sha256(b"changed by a task").hexdigest()


def test_errors_are_told_in_both_languages(address: str, session: requests.Session) -> None:
    body = session.get(url(address, "/user/ann/gone", "GETFILESTATUS")).json()
    assert (body["code"], body["RemoteException"]["exception"]) == ("NotFoundError", "FileNotFoundException")
    assert json.dumps(body)


def test_names_may_hold_line_breaks(address: str, session: requests.Session) -> None:
    assert session.put(url(address, "/user/ann/lines/a%0Ab", "CREATE", data="true"), b"x").status_code == 201
    found = session.get(url(address, "/user/ann/lines", "LISTSTATUS")).json()["FileStatuses"]["FileStatus"]
    assert [status["pathSuffix"] for status in found] == ["a\nb"]


def test_pipes_that_a_task_left_are_not_listed(address: str, data: Path, session: requests.Session) -> None:
    folder = data / "files/user/ann/pipes"
    session.put(url(address, "/user/ann/pipes", "MKDIRS"))
    os.mkfifo(folder / "pipe")
    (folder / "file").touch()
    found = session.get(url(address, "/user/ann/pipes", "LISTSTATUS")).json()["FileStatuses"]["FileStatus"]
    assert [status["pathSuffix"] for status in found] == ["file"]
    assert session.delete(url(address, "/user/ann/pipes", "DELETE", recursive="true")).json()["boolean"]


def test_a_receiver_that_goes_away_ends_the_reading(
    address: str, data: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_home(address, data)
    large = data / "files/user/ann/endless"
    large.touch()
    os.truncate(large, 1 << 40)
    given, real = [], os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        given.append(size)
        return real(fd, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    parts = urlsplit(url(address, "/user/ann/endless", "OPEN"))
    with socket.create_connection((parts.hostname, parts.port), 20) as connection:
        connection.sendall(
            f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n"
            "Authorization: Bearer ann-token\r\n\r\n".encode()
        )
        connection.recv(1 << 20)
    deadline = time.monotonic() + 20
    while (before := len(given)) == 0 or not settled(given, before):
        assert time.monotonic() < deadline
    large.unlink()
    assert not [record for record in caplog.records if "socket.send" in record.getMessage()]


def session_home(address: str, data: Path) -> None:
    answer = requests.get(
        url(address, "/", "GETHOMEDIRECTORY"), headers={"Authorization": "Bearer ann-token"}, timeout=20
    )
    assert answer.json()["Path"] == "/user/ann"


def settled(given: list[int], before: int) -> bool:
    """Whether nothing more was read for a moment."""
    time.sleep(0.2)
    return len(given) == before
