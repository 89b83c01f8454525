"""Large bodies read straight from the socket: whole, cut off, refused, stalled, and where that cannot be."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from openpaisdk.core import Cluster
from openpaisdk.errors import AccessError, QuotaError
from openpaisdk.server.files import direct
from openpaisdk.server.files.incoming import Appending, NewFile
from openpaisdk.storage import BytesSource, WebHDFS, upload, webhdfs
from openpaisdk.storage.contract import Entry, part_name
from support.file_server import serving
from support.servers import make_certificate

LOGIN = {"Authorization": "Bearer ann-token"}
SIZE = 2 * direct.LARGE + 12_345


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each large body was read from its socket."""
    found: list[bool] = []
    real = direct.take_over

    def noted(scope: Any) -> Any:
        answer = real(scope)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(direct, "take_over", noted)
    return found


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as found:
        yield found


def target(address: str, name: str, op: str = "CREATE") -> str:
    return f"{address}/webhdfs/v1/user/ann/{name}?op={op}&data=true"


def stored(tmp_path: Path, name: str) -> Path:
    return tmp_path / "files/user/ann" / name


def begin(address: str, name: str, op: str, size: int, body: bytes, *headers: str) -> socket.socket:
    """A connection on which a request has begun."""
    parts = urlsplit(target(address, name, op))
    found = socket.create_connection((parts.hostname, parts.port), 20)
    verb = {"CREATE": "PUT", "APPEND": "POST"}[op]
    lines = [
        f"{verb} {parts.path}?{parts.query} HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Authorization: {LOGIN['Authorization']}",
        f"Content-Length: {size}",
        *headers,
    ]
    found.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    return found


def until_closed(connection: socket.socket) -> bytes:
    found = b""
    with connection:
        try:
            while piece := connection.recv(65536):
                found += piece
        except ConnectionResetError:
            pass
    return found


def wait_for(what: Any) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.real("openssl")
@pytest.mark.parametrize("way", ["from the socket", "another parser", "TLS"])
def test_a_large_body_arrives_whole_whatever_the_connection(
    way: str, tmp_path: Path, taken: list[bool]
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    listener = {
        "from the socket": {},
        "another parser": {"http": "h11"},
        "TLS": {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)},
    }[way]
    contents = os.urandom(SIZE)
    with serving(tmp_path, listener=listener) as address, requests.Session() as session:
        session.headers.update(LOGIN)
        session.trust_env, session.verify = False, str(certificate)
        assert session.put(target(address, "a"), contents).status_code == 201
        assert session.post(target(address, "a", "APPEND"), contents).status_code == 200
        arrived = session.get(f"{address}/webhdfs/v1/user/ann/a?op=OPEN").content
    assert arrived == contents * 2
    assert taken == [way == "from the socket"] * 2


def test_a_sender_that_asks_before_it_sends_is_told_to_go_on(address: str, tmp_path: Path) -> None:
    contents = os.urandom(SIZE)
    connection = begin(address, "a", "CREATE", SIZE, b"", "Expect: 100-continue")
    assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
    connection.sendall(contents)
    answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"connection: close" in answer.lower()
    assert stored(tmp_path, "a").read_bytes() == contents


def test_bytes_behind_the_body_do_not_get_into_the_file(address: str, tmp_path: Path) -> None:
    contents = os.urandom(SIZE)
    behind = b"GET /webhdfs/v1/user/ann?op=LISTSTATUS HTTP/1.1\r\nHost: x\r\n\r\n"
    connection = begin(address, "a", "CREATE", SIZE, contents + behind)
    assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
    connection.close()
    assert stored(tmp_path, "a").read_bytes() == contents


def test_of_a_sender_that_dies_a_new_file_keeps_nothing_and_an_append_what_came(
    address: str, tmp_path: Path, taken: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    contents = os.urandom(SIZE)
    with caplog.at_level(logging.WARNING):
        begin(address, "new", "CREATE", SIZE, contents[:-1]).close()
        wait_for(lambda: not list((tmp_path / "files/staging").iterdir()))
        assert requests.put(target(address, "old"), b"start", headers=LOGIN, timeout=20).status_code == 201
        begin(address, "old", "APPEND", SIZE, contents[:-1]).close()
        wait_for(lambda: stored(tmp_path, "old").stat().st_size == 5 + SIZE - 1)
        # Free again for the next one, once it has been noticed.
        wait_for(
            lambda: (
                requests.post(target(address, "old", "APPEND"), b"!", headers=LOGIN, timeout=20).status_code
                == 200
            )
        )
    assert not stored(tmp_path, "new").exists()
    assert stored(tmp_path, "old").read_bytes() == b"start" + contents[:-1] + b"!"
    assert taken == [True, True]
    assert not caplog.records


def test_a_disk_that_fills_up_in_the_middle_is_told_to_who_sends_on(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 16 * direct.LARGE
    real = NewFile.write

    def full(self: NewFile, chunks: Any) -> None:
        real(self, chunks)
        if self.size > direct.LARGE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(NewFile, "write", full)
    connection = begin(address, "a", "CREATE", size, b"")
    sending = threading.Thread(target=_send_all, args=(connection, bytes(size)))
    sending.start()
    sending.join(20)
    answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 507 ")
    assert b"disk of the server is full" in answer
    assert not stored(tmp_path, "a").exists()
    assert not list((tmp_path / "files/staging").iterdir())


def test_our_client_stops_sending_when_the_disk_is_full_and_says_so(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = Appending.write, []

    def full(self: Appending, chunks: Any) -> None:
        real(self, chunks)
        written.append(self.size)
        if self.size > direct.LARGE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Appending, "write", full)
    source = tmp_path / "sparse"
    source.touch()
    os.truncate(source, 4 << 30)
    cluster = Cluster(pai_uri=address, user="ann", token="ann-token")
    with pytest.raises(QuotaError, match="disk of the server is full"):
        upload(WebHDFS.of_cluster(cluster), str(source), "/user/ann/large")
    assert written[-1] < 2 * direct.LARGE
    assert not stored(tmp_path, "large").exists()


@pytest.fixture
def store(address: str) -> WebHDFS:
    return WebHDFS.of_cluster(Cluster(pai_uri=address, user="ann", token="ann-token"))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is sent as a part that is renamed when whole."""
    monkeypatch.setattr(webhdfs, "SEGMENT", 1000)
    found = tmp_path / "source"
    found.write_bytes(os.urandom(5000))
    return found


def test_parts_that_were_given_up_go_with_the_next_upload(
    store: WebHDFS, source: Path, tmp_path: Path
) -> None:
    names = {name: part_name(name, "0123456789abcdef") for name in ("a.bin", "a", "a.bin.x")}
    for part in (*names.values(), part_name("a.bin", "fedcba9876543210")):
        store.write(f"/user/ann/d/{part}", BytesSource(b"left"))
    for part in names.values():
        os.utime(stored(tmp_path, "d") / part, (1e9, 1e9))
    upload(store, str(source), "/user/ann/d/a.bin")
    left = {path.name for path in stored(tmp_path, "d").iterdir()}
    assert left == {"a.bin", names["a"], names["a.bin.x"], part_name("a.bin", "fedcba9876543210")}


def test_a_folder_that_cannot_be_listed_is_no_failure_of_an_upload(
    store: WebHDFS, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: str) -> list[Entry]:
        raise AccessError(f"{path}: permission denied")

    monkeypatch.setattr(store, "list", closed)
    assert upload(store, str(source), "/user/ann/a.bin")["copied"] == 1
    assert stored(tmp_path, "a.bin").read_bytes() == source.read_bytes()


def test_the_same_file_sent_by_two_at_once_is_there_for_both(
    store: WebHDFS, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, before = store._fill, []

    def overtaken(part: str, contents: Any) -> None:
        real(part, contents)
        if not before:
            before.append(part)
            upload(store, str(source), "/user/ann/a.bin")

    monkeypatch.setattr(store, "_fill", overtaken)
    upload(store, str(source), "/user/ann/a.bin")
    assert before
    assert stored(tmp_path, "a.bin").read_bytes() == source.read_bytes()


def _send_all(connection: socket.socket, contents: bytes) -> None:
    try:
        connection.sendall(contents)
    except OSError:
        pass  # the answer may still be there


def test_senders_that_stall_keep_nobody_waiting(address: str, tmp_path: Path) -> None:
    contents = os.urandom(SIZE)
    half = SIZE // 2 + direct.LARGE // 2
    stalled = [begin(address, f"s{number}", "CREATE", SIZE, contents[:half]) for number in range(20)]
    answer = requests.put(target(address, "quick"), contents, headers=LOGIN, timeout=20)
    assert answer.status_code == 201
    for connection in stalled:
        connection.sendall(contents[half:])
        assert until_closed(connection).startswith(b"HTTP/1.1 201 ")
    assert all(stored(tmp_path, f"s{number}").read_bytes() == contents for number in range(20))


def test_a_server_that_stops_lets_go_of_a_stalled_sender(tmp_path: Path) -> None:
    with serving(tmp_path, listener={"timeout_graceful_shutdown": 1}) as address:
        connection = begin(address, "a", "CREATE", SIZE, bytes(direct.LARGE + 1))
        wait_for(lambda: sum(file.stat().st_size for file in (tmp_path / "files/staging").iterdir()))
        begun = time.monotonic()
    assert time.monotonic() - begun < 8
    connection.close()
    assert not list((tmp_path / "files/staging").iterdir())


def test_a_server_that_stops_waits_for_the_thread_that_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failed = direct._SocketBody._turn, []

    def noted(self: Any, sink: Any) -> None:
        try:
            real(self, sink)
        except OSError as error:
            failed.append(error.errno)
            raise

    monkeypatch.setattr(direct._SocketBody, "_turn", noted)
    with serving(tmp_path, listener={"timeout_graceful_shutdown": 1}) as address:
        connection = begin(address, "a", "CREATE", 1 << 44, bytes(direct.LARGE))
        sending = threading.Thread(target=_send_slowly, args=(connection,))
        sending.start()
        wait_for(lambda: sum(file.stat().st_size for file in (tmp_path / "files/staging").iterdir()))
    sending.join(20)
    connection.close()
    assert not list((tmp_path / "files/staging").iterdir())
    assert errno.EBADF not in failed


def _send_slowly(connection: socket.socket) -> None:
    try:
        while True:
            connection.sendall(bytes(1 << 18))
            time.sleep(0.003)
    except OSError:
        pass  # the server is gone
