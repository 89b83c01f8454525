"""A real socket server that misbehaves on command, and a function in place of the network."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from urllib.parse import parse_qsl, urlsplit


class FaultyServer:
    """Answers each request with the next of `answers`: bytes to send, or a function of the connection.

    A function that returns False closes the connection.
    """

    def __init__(self, tls=None):
        self.answers = deque()
        self.requests = []
        self.connections = 0
        self._tls = tls
        self._open = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.uri = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._open.append(connection)
            with connection, connection.makefile("rb") as reader:
                while (request := self._read(reader)) is not None:
                    self.requests.append(request)
                    answer = self.answers.popleft() if self.answers else ok(b"{}")
                    keep = answer(connection) if callable(answer) else connection.sendall(answer)
                    if keep is False:
                        return
        except (OSError, ValueError):
            pass

    @staticmethod
    def _read(reader):
        line = reader.readline()
        if not line:
            return None
        headers = {}
        while (row := reader.readline()) not in (b"\r\n", b""):
            name, _, value = row.decode().partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(reader.readline(), 16):
                body += reader.read(size)
                reader.readline()
            reader.readline()
        else:
            body = reader.read(int(headers.get("content-length", 0)))
        method, path, _ = line.decode().split(" ")
        return method, path, headers, body

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()


def ok(body, kind="application/json", status="200 OK", extra=""):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


class Request:
    def __init__(self, method, url, headers, body):
        parts = urlsplit(url)
        self.method = method
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path.removeprefix("/rest-server/api/v2")
        self.full_path = parts.path
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.headers = headers
        self.body = body

    @property
    def data(self):
        return json.loads(self.body) if self.body else None


class Answers:
    """The network as a function: answers by `METHOD path`, a value, a list of them, or a function."""

    def __init__(self, table=None):
        self.table = dict(table or {})
        self.calls = []
        self.extra = {}

    def __call__(self, method, url, headers, body):
        request = Request(method, url, dict(headers), body)
        self.calls.append(request)
        key = f"{method} {request.path}"
        if key not in self.table:
            found = 404, {"code": "NoApiError", "message": f"{request.path} is not an API"}
        else:
            found = self.table[key]
            if isinstance(found, list) and found and isinstance(found[0], Answer):
                found = found.pop(0) if len(found) > 1 else found[0]
        if callable(found):
            found = found(request)
        if isinstance(found, BaseException):
            raise found
        status, value, more = found if isinstance(found, Answer) else (*_pair(found), {})
        if isinstance(value, str):
            return status, {"content-type": "text/plain", **self.extra, **more}, value.encode()
        if isinstance(value, bytes) or hasattr(value, "__next__"):
            return status, {**self.extra, **more}, value
        return status, {"content-type": "application/json", **self.extra, **more}, json.dumps(value).encode()

    @property
    def paths(self):
        return [f"{call.method} {call.path}" for call in self.calls]


class Answer(tuple):
    """Status, body and headers."""

    def __new__(cls, status, value=None, headers=None):
        return super().__new__(cls, (status, {} if value is None else value, headers or {}))


def _pair(found):
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], int):
        return found
    return 200, found


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
