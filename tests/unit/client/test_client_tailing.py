"""Following on a genuine OpenPAI server: merging the ends of logs, expiring addresses, logs moved aside."""

from __future__ import annotations

import pytest
from client_doubles import Answer
from hypothesis import given, settings
from hypothesis import strategies as st

from openpaisdk.core import Cluster, LogLine
from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.rest import tailing
from openpaisdk.rest.tailing import Gap, Moved, Seen

TOKEN_LIFE = 120


class OpenPAI:
    """A job, its logs behind a log manager with short-lived addresses, and what happens at each look."""

    def __init__(self, clock, *, window=16384, tells_range=True, takes_range=True):
        self.clock = clock
        self.window = window
        self.tells_range = tells_range
        self.takes_range = takes_range
        self.logs = {}
        self.state = "RUNNING"
        self.script = []
        self.lists = 0
        self.refused = 0
        self.task_attempt = 0
        self.job_attempt = 0
        self.placed = True

    def write(self, text, stream="stdout"):
        key = (self.job_attempt, self.task_attempt, stream)
        self.logs[key] = self.logs.get(key, b"") + text

    def rotate(self, stream="stdout"):
        key = (self.job_attempt, self.task_attempt, stream)
        self.logs[self.job_attempt, self.task_attempt, stream + ".1"] = self.logs[key]
        self.logs[key] = b""

    def __call__(self, method, url, headers, body):
        path = url.removeprefix("http://pai.example.com")
        if path.startswith("/log-manager/"):
            return self.log(path, headers)
        assert headers.get("authorization") == "Bearer t" or path == "/api/v2/info"
        path = path.removeprefix("/rest-server/api/v2/jobs/me~j")
        if path == "":
            if self.script:
                self.script.pop(0)()
            return self.answer(self.detail())
        if "/logs" in path:
            self.lists += 1
            _, _, job_attempt, *_, attempt, rest = path.split("/")
            names = [k[2] for k in self.logs if k[:2] == (int(job_attempt), int(attempt))]
            if not self.placed or not names:
                return self.answer({"code": "NoTaskLogError", "message": "none"}, 404)
            tail = "&tail-mode=true" if "tail-mode=true" in rest else ""
            places = f"/log-manager/n:9103/{job_attempt}/{attempt}"
            ending = f"?token={self.clock.now}{tail}"
            found = [{"name": name, "uri": f"{places}/{name}{ending}"} for name in names]
            return self.answer({"locations": found})
        return self.answer({"code": "NoApiError", "message": "no"}, 404)

    def detail(self):
        status = {
            "taskIndex": 0,
            "attemptId": self.task_attempt,
            "taskState": self.state,
            "containerLog": "/api/v2/x",
        }
        return {
            "jobStatus": {
                "state": self.state,
                "subState": "x",
                "attemptId": self.job_attempt,
                "appExitCode": 0 if self.state == "SUCCEEDED" else None,
            },
            "taskRoles": {"worker": {"taskStatuses": [status]}},
        }

    def log(self, path, headers):
        assert "authorization" not in headers
        place, _, query = path.partition("?")
        _, _, _, job_attempt, attempt, name = place.split("/")
        if self.clock.now - float(query.partition("&")[0].removeprefix("token=")) > TOKEN_LIFE:
            self.refused += 1
            return 403, {"content-type": "text/html"}, b"<html>403</html>"
        data = self.logs[int(job_attempt), int(attempt), name]
        if "tail-mode" in query:
            start = max(0, len(data) - self.window)
            found = {"content-range": f"bytes {start}-{len(data)}/{len(data)}"} if self.tells_range else {}
            return 206, found, data[start:]
        span = headers.get("range", "").removeprefix("bytes=")
        if span and self.takes_range:
            first, _, last = span.partition("-")
            if not first:
                start = max(0, len(data) - int(last))
            else:
                start = int(first)
                if start >= len(data):
                    return 416, {}, b""
            return 206, {"content-range": f"bytes {start}-{len(data) - 1}/{len(data)}"}, data[start:]
        return 200, {}, data

    @staticmethod
    def answer(data, status=200):
        import json

        return status, {"content-type": "application/json"}, json.dumps(data).encode()

    def end(self):
        self.state = "SUCCEEDED"


def follow(server, clock, **options):
    cluster = Cluster(
        pai_uri="http://pai.example.com",
        user="me",
        token="t",
        transport=server,
        sleep=clock.sleep,
        clock=clock,
    )
    return list(cluster.follow("j", **options))


def text(records, stream="stdout"):
    return "".join(r.text for r in records if isinstance(r, LogLine) and r.stream == stream)


@pytest.mark.parametrize("tells_range", [True, False])
@pytest.mark.parametrize("takes_range", [True, False])
def test_nothing_lost_nothing_twice(clock, tells_range, takes_range):
    server = OpenPAI(clock, tells_range=tells_range, takes_range=takes_range)
    whole = b""

    def write(first, last):
        def now():
            nonlocal whole
            piece = b"".join(b"line %d of the log\n" % number for number in range(first, last))
            whole += piece
            server.write(piece)

        return now

    server.script = [
        write(0, 10),
        write(10, 20),
        lambda: None,
        write(20, 700),
        write(700, 3000),
        write(3000, 3010),
        lambda: (write(3010, 6000)(), server.end()),
    ]
    records = follow(server, clock, lines=False)
    assert text(records).encode() == whole
    assert records[-1].final and records[-1].state == "SUCCEEDED"
    assert [r.text for r in follow(server, clock, tail=2) if isinstance(r, LogLine)] == [
        "line 5998 of the log",
        "line 5999 of the log",
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 90), st.just("rotate")), max_size=12),
    st.booleans(),
)
def test_random_growth_and_moves(steps, tells_range):
    from client_doubles import Clock

    clock = Clock()
    server = OpenPAI(clock, window=64, tells_range=tells_range)
    whole = []

    def step(what):
        def now():
            if what == "rotate":
                server.rotate()
                return
            piece = b"".join(b"%d;" % (1000 + len(whole) + n) for n in range(what))
            whole.extend([piece] + [b""] * what)
            server.write(piece)

        return now

    server.write(b"")
    # A log that is moved aside twice between two looks loses its middle on OpenPAI itself.
    moved = False
    for what in steps:
        if what == "rotate" and moved:
            continue
        moved = what == "rotate"
        server.script.append(step(what))
    server.script.append(server.end)
    old, tailing.WINDOW = tailing.WINDOW, 64
    try:
        assert text(follow(server, clock, lines=False)).encode() == b"".join(whole)
    finally:
        tailing.WINDOW = old


def test_addresses_are_listed_again_before_and_when_they_expire(clock):
    server = OpenPAI(clock)
    server.write(b"x\n")
    server.script = [lambda: server.write(b"y\n")] + [lambda: None] * 60 + [server.end]
    records = follow(server, clock, streams=["stdout"])
    assert text(records) == "xy"
    assert server.refused == 0
    assert 2 <= server.lists <= 5

    def sleep_long():
        clock.now += TOKEN_LIFE + 5

    server.state = "RUNNING"
    tailing_life, tailing.ADDRESSES_GOOD_FOR = tailing.ADDRESSES_GOOD_FOR, 10_000.0
    try:
        server.script = [lambda: None, sleep_long, lambda: server.write(b"z\n"), server.end]
        assert text(follow(server, clock, streams=["stdout"])) == "xyz"
    finally:
        tailing.ADDRESSES_GOOD_FOR = tailing_life
    assert server.refused >= 1


def test_waits_for_a_task_that_is_not_placed(clock):
    server = OpenPAI(clock)
    server.placed = False
    server.state = "WAITING"

    def place():
        server.placed = True
        server.state = "RUNNING"
        server.write(b"hello\n")

    server.script = [lambda: None, lambda: None, place, server.end]
    records = follow(server, clock)
    assert [getattr(r, "state", None) or r.text for r in records] == [
        "WAITING",
        "RUNNING",
        "hello",
        "SUCCEEDED",
    ]


def test_the_log_of_a_retried_task_is_read_to_its_end(clock):
    server = OpenPAI(clock)
    server.write(b"first\n")

    def retry():
        server.write(b"last words\n")
        server.task_attempt = 1
        server.write(b"again\n")

    server.script = [lambda: None, retry, server.end]
    assert [r.text for r in follow(server, clock) if isinstance(r, LogLine)] == [
        "first",
        "last words",
        "again",
    ]


def test_only_the_tasks_and_streams_asked_for(clock):
    server = OpenPAI(clock)
    server.write(b"out\n")
    server.write(b"err\n", "stderr")
    server.script = [server.end]
    assert [r.text for r in follow(server, clock, streams=["stderr"]) if isinstance(r, LogLine)] == ["err"]
    assert len(follow(server, clock, tasks=["worker/7"])) == 1


def test_broken_letters_are_put_together(clock):
    server = OpenPAI(clock)
    letter = "ü".encode()
    server.write(letter[:1])
    server.script = [lambda: None, lambda: server.write(letter[1:]), server.end]
    assert text(follow(server, clock)) == "ü"


def test_merge_cases():
    seen = Seen()
    assert seen.merge(b"abc", 0) == b"abc"
    assert seen.merge(b"bcd", 1) == b"d"
    with pytest.raises(Gap):
        seen.merge(b"x", 9)
    with pytest.raises(Moved):
        seen.merge(b"a", 0)
    with pytest.raises(Moved):
        seen.merge(b"xyzuv", 0)
    assert (seen.position, seen.last) == (4, b"abcd")


def test_a_web_page_of_an_old_server(clock, make_cluster, answers):
    """Before 1.4 the log is a page elsewhere, and there is one for both streams."""
    pages = ["<html><pre>a &lt; b\n</pre></html>", "<html><pre>a &lt; b\nc\n</pre></html>"]
    states = ["RUNNING", "SUCCEEDED"]
    page = "http://10.0.0.1:9103/log-manager/tail/x"

    def server(method, url, headers, body):
        if url == page:
            return 200, {"content-type": "text/html"}, pages[0 if len(states) else 1].encode()
        if url.endswith("/jobs/me~j"):
            state = states.pop(0) if states else "SUCCEEDED"
            return OpenPAI.answer(
                {
                    "jobStatus": {"state": state},
                    "taskRoles": {"worker": {"taskStatuses": [{"taskIndex": 0, "containerLog": page}]}},
                }
            )
        return OpenPAI.answer({"code": "NoApiError", "message": "no"}, 404)

    records = follow(server, clock)
    assert [r.text for r in records if isinstance(r, LogLine)] == ["a < b", "c"]
    cluster = make_cluster(transport=server)
    assert cluster.log_locations("j", "worker") == [{"name": "all", "uri": page}]
    assert cluster.read_log("j") == "a < b\nc\n"


def reader(server, clock):
    return Cluster(
        pai_uri="http://pai.example.com",
        user="me",
        token="t",
        transport=server,
        sleep=clock.sleep,
        clock=clock,
    )


@pytest.mark.parametrize("takes_range", [True, False])
def test_read_log(clock, takes_range):
    server = OpenPAI(clock, takes_range=takes_range)
    server.write(b"".join(b"%06d\n" % number for number in range(10_000)))
    cluster = reader(server, clock)
    assert len(cluster.read_log("j")) == 70_000
    assert cluster.read_log("j", "Worker_", tail=2) == "009998\n009999\n"
    assert cluster.read_log("j", tail=4000).splitlines()[0] == "006000"
    assert cluster.read_log("j", tail=20_000).count("\n") == 10_000
    assert cluster.read_log("j", tail=0) == ""
    with pytest.raises(NotFoundError, match="no log 'stderr'") as caught:
        cluster.read_log("j", stream="stderr")
    assert caught.value.hint == "there are: stdout"
    with pytest.raises(NotFoundError, match=r"no task worker/9$") as caught:
        cluster.read_log("j", "worker", 9)
    assert caught.value.hint == "name one: worker/0"


def test_the_bytes_of_a_log_are_not_changed(clock):
    server = OpenPAI(clock)
    server.write(b"a\xff\nb\xfe")
    cluster = reader(server, clock)
    assert cluster.read_log_bytes("j") == b"a\xff\nb\xfe"
    assert cluster.read_log_bytes("j", tail=1) == b"b\xfe"
    assert cluster.read_log("j", tail=1) == "b\ufffd"


def test_the_end_of_an_empty_log_is_empty(clock):
    server = OpenPAI(clock)
    server.write(b"")
    server.log = lambda path, headers: (416, {"content-range": "bytes */0"}, b"")
    assert reader(server, clock).read_log("j", tail=2) == ""


def test_read_log_lists_again_when_the_address_expired(clock):
    server = OpenPAI(clock)
    server.write(b"x")
    cluster = reader(server, clock)
    real, expired = server.log, [True]

    def log(path, headers):
        return (403, {}, b"") if expired and expired.pop() else real(path, headers)

    server.log = log
    assert cluster.read_log("j") == "x"
    assert server.lists == 2
    expired[:] = [True, True]
    with pytest.raises(Exception, match="403"):
        cluster.read_log("j")


def test_read_log_needs_a_task_where_there_are_several(cluster, answers):
    tasks = [{"taskIndex": 0}, {"taskIndex": 1}]
    answers.table["GET /jobs/me~j"] = {"taskRoles": {"worker": {"taskStatuses": tasks}}}
    with pytest.raises(UsageError, match="2 tasks") as caught:
        cluster.read_log("j")
    assert "worker/0, worker/1" in caught.value.hint
    answers.table["GET /jobs/me~j"] = {"taskRoles": {}}
    with pytest.raises(NotFoundError, match="no tasks yet"):
        cluster.read_log("j")


def test_our_own_addresses_get_the_token(cluster, answers):
    base = "/jobs/me~j/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
    answers.table["GET /jobs/me~j"] = {"taskRoles": {"worker": {"taskStatuses": [{"taskIndex": 0}]}}}
    answers.table[f"GET {base}"] = {
        "locations": [{"name": "stdout", "uri": f"/rest-server/api/v2{base}/stdout?a=1"}]
    }
    answers.table[f"GET {base}/stdout"] = Answer(200, b"text")
    assert cluster.read_log("j") == "text"
    assert answers.calls[-1].headers["authorization"] == "Bearer t0ken"
    assert answers.calls[-1].query == {"a": "1"}
