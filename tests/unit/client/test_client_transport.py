"""The HTTP client against a real socket that misbehaves."""

from __future__ import annotations

import os
import resource
import socket
import ssl
import subprocess
import threading

import pytest
from client_doubles import FaultyServer, ok
from hypothesis import given, settings
from hypothesis import strategies as st

from openpaisdk.errors import ConfigError, RateLimitedError, UnavailableError, UsageError
from openpaisdk.transport import (
    NetworkError,
    Transport,
    call_with_retry,
    iter_events,
    query_string,
    quote,
    split_url,
)
from openpaisdk.transport.proxy import proxy_for
from openpaisdk.transport.retry import seconds_from
from support.servers import make_certificate


@pytest.fixture
def transport(faulty):
    found = Transport(faulty.uri, timeout=5.0)
    yield found
    found.close()


def close_now(connection):
    return False


def test_keeps_the_connection(faulty, transport):
    faulty.answers.extend([ok(b'{"a": 1}'), ok(b""), ok(b"[2]")])
    assert transport.request("GET", "/one", query={"x": "a b", "y": None, "z": True}).json() == {"a": 1}
    assert transport.request("PUT", "/two", body=b"hi", headers={"X-Thing": "1"}).body == b""
    assert transport.request("GET", "/three").json() == [2]
    assert faulty.connections == 1
    assert faulty.requests[0][:2] == ("GET", "/one?x=a%20b&z=true")
    method, path, headers, body = faulty.requests[1]
    assert (method, path, body, headers["x-thing"]) == ("PUT", "/two", b"hi", "1")
    assert headers["host"] == f"127.0.0.1:{faulty.port}"
    assert headers["accept-encoding"] == "identity"


def test_every_status_is_an_answer(faulty, transport):
    faulty.answers.append(ok(b"no", "text/html", "404 Not Found"))
    response = transport.request("GET", "/x")
    assert (response.status, response.text, response.headers["content-type"]) == (404, "no", "text/html")


def test_chunked_bodies_both_ways(faulty, transport):
    faulty.answers.append(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3;x=y\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nT: 1\r\n\r\n"
    )
    response = transport.request("POST", "/up", body=iter([b"one", b"", b"two" * 1000]))
    assert response.body == b"abc0123456789abcdef"
    assert faulty.requests[0][3] == b"one" + b"two" * 1000
    transport.request("GET", "/again")
    assert faulty.connections == 1


def test_body_until_close_and_old_http(faulty, transport):
    def old(connection):
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nall of it")
        return False

    faulty.answers.extend([old, ok(b"next")])
    assert transport.request("GET", "/").body == b"all of it"
    assert transport.request("GET", "/").body == b"next"
    assert faulty.connections == 2


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_no_body_where_none_belongs(faulty, transport, status):
    faulty.answers.append(f"HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n".encode())
    assert transport.request("GET", "/").body == b""
    assert transport.request("GET", "/").body == b"{}"


def test_head_has_no_body(faulty, transport):
    faulty.answers.append(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    assert transport.request("HEAD", "/").headers["content-length"] == "5"
    assert transport.request("GET", "/").status == 200


def test_skips_interim_answers(faulty, transport):
    faulty.answers.append(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + ok(b"x"))
    assert transport.request("GET", "/").body == b"x"


def test_stream_arrives_piece_by_piece(faulty, transport):
    second = threading.Event()

    def slowly(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert second.wait(5)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")

    faulty.answers.append(slowly)
    response = transport.request("GET", "/", stream=True)
    pieces = response.iter_chunks()
    assert next(pieces) == b"one"
    second.set()
    assert list(pieces) == [b"two"]
    transport.request("GET", "/")
    assert faulty.connections == 1


def test_a_stream_left_early_is_not_used_again(faulty, transport):
    faulty.answers.append(ok(b"x" * 100_000))
    with transport.request("GET", "/", stream=True) as response:
        next(response.iter_chunks())
    assert transport.request("GET", "/").body == b"{}"
    assert faulty.connections == 2


def test_requests_while_a_stream_is_open(faulty, transport):
    faulty.answers.extend([ok(b"abc"), ok(b"def")])
    with transport.request("GET", "/stream", stream=True) as response:
        assert transport.request("GET", "/other").body == b"def"
        assert response.body == b"abc"


def test_refused():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NetworkError, match=f"127.0.0.1:{port}: nothing listens there") as caught:
        Transport(f"http://127.0.0.1:{port}").request("GET", "/")
    assert (caught.value.reason, caught.value.sent) == ("refused", False)
    assert "opai cluster list" in caught.value.hint


def test_unknown_host():
    with pytest.raises(NetworkError, match=r"no host called 'pai.invalid'") as caught:
        Transport("http://pai.invalid").request("GET", "/")
    assert caught.value.reason == "dns"


def test_timeout(faulty):
    done = threading.Event()
    faulty.answers.append(lambda connection: bool(done.wait(5)))
    transport = Transport(faulty.uri, timeout=0.05)
    with pytest.raises(NetworkError, match=r"did not answer within 0.05 s") as caught:
        transport.request("GET", "/")
    done.set()
    assert (caught.value.reason, caught.value.sent) == ("timeout", True)


def test_timeout_in_mid_body(faulty):
    done = threading.Event()

    def half(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        done.wait(5)
        return False

    faulty.answers.append(half)
    with pytest.raises(NetworkError, match=r"did not answer within 0.05 s"):
        Transport(faulty.uri, timeout=0.05).request("GET", "/")
    done.set()


@pytest.mark.parametrize(
    "cut",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-",
    ],
)
def test_cut_in_mid_answer(faulty, transport, cut):
    def half(connection):
        connection.sendall(cut)
        return False

    faulty.answers.append(half)
    with pytest.raises(NetworkError, match="lost before the answer was complete") as caught:
        transport.request("GET", "/")
    assert (caught.value.reason, caught.value.sent) == ("lost", True)
    assert len(faulty.requests) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 300 + b"\r\n",
    ],
)
def test_not_http(faulty, transport, garbage):
    def talk(connection):
        connection.sendall(garbage)
        return False

    faulty.answers.append(talk)
    with pytest.raises(NetworkError, match="not HTTP") as caught:
        transport.request("GET", "/")
    assert caught.value.reason == "garbled"


def test_a_kept_connection_that_died_is_replaced_unseen(faulty, transport):
    def then_close(connection):
        connection.sendall(ok(b"1"))
        return False

    faulty.answers.extend([then_close, ok(b"2"), then_close, ok(b"4")])
    assert transport.request("GET", "/").body == b"1"
    wait_for_close(transport)
    assert transport.request("POST", "/", body=b"x").body == b"2"
    assert transport.request("GET", "/").body == b"1"
    wait_for_close(transport)
    assert transport.request("GET", "/").body == b"4"
    assert len(faulty.requests) == 4


def wait_for_close(transport):
    import select

    kept = next(iter(transport._kept.by_origin.values()))
    assert select.select([kept._socket], [], [], 5)[0]


def test_a_post_on_a_kept_connection_is_not_sent_twice(faulty, transport):
    faulty.answers.extend([ok(b"1"), close_now, ok(b"3")])
    transport.request("GET", "/")
    with pytest.raises(NetworkError) as caught:
        transport.request("POST", "/jobs", body=b"x")
    assert caught.value.sent
    assert len(faulty.requests) == 2


def test_a_get_on_a_kept_connection_is_sent_again(faulty, transport):
    faulty.answers.extend([ok(b"1"), close_now, ok(b"3")])
    transport.request("GET", "/")
    assert transport.request("GET", "/").body == b"3"
    assert len(faulty.requests) == 3


def test_one_connection_per_thread(faulty, transport):
    barrier = threading.Barrier(4)
    found = []

    def ask():
        barrier.wait(5)
        for _ in range(5):
            found.append(transport.request("GET", "/").status)
        transport.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [200] * 20
    assert faulty.connections <= 4


def test_a_forked_child_does_not_share_the_connection(faulty, transport, monkeypatch):
    transport.request("GET", "/")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    transport.request("GET", "/")
    assert faulty.connections == 2


def test_whole_urls_go_elsewhere(faulty):
    other = Transport("http://pai.invalid/base")
    assert other.request("GET", f"{faulty.uri}/x?a=1", query={"b": 2}).status == 200
    assert faulty.requests[0][1] == "/x?a=1&b=2"
    other.close()


def test_line_breaks_and_strange_letters_are_refused(transport):
    with pytest.raises(UsageError, match="line break"):
        transport.request("GET", "/", headers={"x": "a\r\nB: c"})
    with pytest.raises(UsageError, match="header"):
        transport.request("GET", "/", headers={"x": "日"})


def test_paths_with_blanks_are_quoted(faulty, transport):
    transport.request("GET", "/a b/ü?x=%20")
    assert faulty.requests[0][1] == "/a%20b/%C3%BC?x=%20"


def test_events():
    text = b': hello\n\nevent: log\nid: 7\ndata: {"a":\ndata: 1}\n\ndata:plain\r\n\r\nevent: x\n\nretry: 5\n'
    text += b"data: cut"

    class Pieces:
        def iter_chunks(self):
            return iter([text[at : at + 3] for at in range(0, len(text), 3)])

    assert list(iter_events(Pieces())) == [("log", "7", '{"a":\n1}'), ("message", "7", "plain")]


@settings(deadline=None)
@given(st.text())
def test_quote_is_undone_by_the_standard_library(text):
    from urllib.parse import unquote

    assert unquote(quote(text)) == text
    assert quote(text).isascii()


def test_query_string():
    assert query_string(None) == ""
    assert query_string({"a": ["x", "y"], "b": False, "c": 0}) == "?a=x,y&b=false&c=0"


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("http://Host", ("http", "host", 80), ""),
        ("https://host:8443/a/b?c", ("https", "host", 8443), "/a/b?c"),
        ("host:81/x", ("http", "host", 81), "/x"),
        ("http://[::1]:8080/", ("http", "::1", 8080), "/"),
        ("http://h?x=1#part", ("http", "h", 80), "/?x=1"),
    ],
)
def test_split_url(url, origin, path):
    assert split_url(url) == (origin, path)


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://h:99999", "http://h:x", "", "http://user:pw@host"]
)
def test_addresses_that_are_none(url):
    with pytest.raises(ConfigError) as caught:
        split_url(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"http_proxy": "http://proxy:3128"}, ("http", "proxy", 3128)),
        ({"HTTP_PROXY": "proxy:3128"}, ("http", "proxy", 3128)),
        ({"https_proxy": "http://proxy:3128"}, None),
        ({"all_proxy": "http://proxy:3128", "no_proxy": "other,.example.com"}, None),
        ({"all_proxy": "http://proxy:3128", "NO_PROXY": "*"}, None),
        ({"all_proxy": "http://proxy:3128", "no_proxy": "ample.com"}, ("http", "proxy", 3128)),
    ],
)
def test_proxies(environment, proxy):
    assert proxy_for(("http", "pai.example.com", 80), environment) == proxy
    assert proxy_for(("http", "127.0.0.1", 80), environment) is None


def test_through_a_proxy(faulty, monkeypatch):
    monkeypatch.setenv("http_proxy", faulty.uri)
    monkeypatch.setenv("no_proxy", "")
    transport = Transport("http://pai.example.com")
    assert transport.request("GET", "/x").status == 200
    assert faulty.requests[0][1] == "http://pai.example.com/x"
    assert faulty.requests[0][2]["host"] == "pai.example.com"
    transport.close()


def test_a_proxy_that_refuses_a_tunnel(faulty, monkeypatch):
    monkeypatch.setenv("https_proxy", faulty.uri)
    monkeypatch.setenv("no_proxy", "")
    faulty.answers.append(b"HTTP/1.1 403 Forbidden\r\n\r\n")
    with pytest.raises(NetworkError, match=r"refused a connection to https://pai.example.com: HTTP/1.1 403"):
        Transport("https://pai.example.com").request("GET", "/x")
    assert faulty.requests[0][:2] == ("CONNECT", "pai.example.com:443")


def test_retries_with_growing_pauses(clock):
    failures = [UnavailableError("away"), NetworkError("lost", reason="lost", sent=True)]
    said = []

    def call():
        if failures:
            raise failures.pop()
        return "done"

    assert call_with_retry(call, sleep=clock.sleep, notice=said.append) == "done"
    assert clock.slept == [0.5, 1.0]
    assert said == []


def test_retry_after_is_honoured_and_said(clock):
    failures = [RateLimitedError("too many", retry_after=60.0)]
    said = []

    def call():
        if failures:
            raise failures.pop()

    call_with_retry(call, sleep=clock.sleep, notice=said.append)
    assert clock.slept == [60.0]
    assert said == ["too many; trying again in 60 s"]


@pytest.mark.parametrize(
    "error",
    [
        UsageError("no"),
        NetworkError("refused", reason="refused", sent=False),
        NetworkError("tls", reason="tls", sent=False),
        RateLimitedError("come back tomorrow", retry_after=3600.0),
    ],
)
def test_what_waiting_does_not_help_is_said_at_once(clock, error):
    def call():
        raise error

    with pytest.raises(type(error)):
        call_with_retry(call, sleep=clock.sleep)
    assert clock.slept == []


def test_gives_up_after_some_attempts(clock):
    calls = []

    def call():
        calls.append(1)
        raise UnavailableError("away")

    with pytest.raises(UnavailableError):
        call_with_retry(call, attempts=3, sleep=clock.sleep)
    assert len(calls) == 3


def test_seconds_from():
    assert seconds_from("60") == 60.0
    assert seconds_from(None) is None
    assert seconds_from("soon") is None
    assert seconds_from("Thu, 01 Jan 1970 00:01:00 GMT", now=15.0) == 45.0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder / "cert.pem", folder / "key.pem")
    return folder


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server = FaultyServer(context)
    yield server
    server.close()


@pytest.mark.real("openssl")
def test_an_unknown_certificate_is_not_trusted(secure):
    with pytest.raises(
        NetworkError, match=r"certificate of https://127.0.0.1:\d+ is not trusted: self"
    ) as caught:
        Transport(secure.uri).request("GET", "/")
    assert caught.value.reason == "tls"
    assert "verify" in caught.value.hint
    assert secure.requests == []


@pytest.mark.real("openssl")
@pytest.mark.parametrize("verify", ["ca", False])
def test_tls_with_a_ca_file_or_unchecked(secure, certificate, verify):
    transport = Transport(secure.uri, verify=str(certificate / "cert.pem") if verify else False)
    secure.answers.extend([ok(b"a"), ok(b"b")])
    assert [transport.request("GET", "/").body for _ in range(2)] == [b"a", b"b"]
    transport.close()


@pytest.mark.real("openssl")
def test_a_ca_file_that_is_none(secure, tmp_path):
    with pytest.raises(ConfigError, match=r"missing.pem"):
        Transport(secure.uri, verify=str(tmp_path / "missing.pem")).request("GET", "/")
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(ConfigError, match=r"bad.pem"):
        Transport(secure.uri, verify=str(tmp_path / "bad.pem")).request("GET", "/")


def test_https_to_a_port_that_does_not_speak_it(faulty):
    def plain(connection):
        return False

    faulty.answers.append(plain)
    with pytest.raises(NetworkError) as caught:
        Transport(f"https://127.0.0.1:{faulty.port}", timeout=0.5).request("GET", "/")
    assert caught.value.sent is False


def test_no_ssl_for_plain_http():
    code = "import sys, openpaisdk.core; print(*(name in sys.modules for name in ('ssl', 'email', 'http')))"
    import sys

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False", "False"]


class EarlyServer:
    """Says something as soon as it has read the head of a request; then takes the body and answers."""

    def __init__(self, early, answer=b""):
        self.taken = 0
        self._early = early
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def _serve(self):
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as reader:
            size = 0
            while (row := reader.readline().lower()) != b"\r\n":
                if row.startswith(b"content-length:"):
                    size = int(row.partition(b":")[2])
            connection.sendall(self._early)
            while self.taken < size and (piece := reader.read1(65536)):
                self.taken += len(piece)
            connection.sendall(self._answer)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(10)
        self._listener.close()
        assert not self._thread.is_alive()


def send_large(server, pieces=400):
    transport = Transport(server.uri, timeout=5.0)
    body = (bytes(65536) for _ in range(pieces))
    try:
        return transport.request("PUT", "/x", headers={"content-length": str(pieces << 16)}, body=body)
    finally:
        assert not transport._kept.by_origin or server.taken == pieces << 16
        transport.close()


@pytest.mark.parametrize("early", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"])
def test_a_word_on_the_way_does_not_stop_a_body(early):
    with EarlyServer(early, ok(b"done")) as server:
        assert send_large(server).text == "done"
    assert server.taken == 400 << 16


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for fd in opened:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_answer_stops_a_body(many_descriptors):
    with EarlyServer(ok(b"full", status="507 Insufficient Storage")) as server:
        answer = send_large(server, 40_000)
        assert (answer.status, answer.text) == (507, "full")
    assert server.taken < 40_000 << 16
