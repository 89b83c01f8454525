"""Logs: addresses, ranges, following one log or a whole job, with pieces that end between characters."""

from __future__ import annotations

import asyncio
import json
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openpaisdk.server.follow import Choice, JobFollower
from openpaisdk.server.logfiles import Part, Tail, open_log, pieces, start_of_last_lines, whole_characters
from openpaisdk.server.routes.logs import CHUNK

LOGS = "/api/v2/jobs/ann~job/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"


def frames(data: bytes) -> list[tuple[str, dict]]:
    found = []
    for block in data.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != ":")
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


class Follower:
    """Reads a stream until told enough."""

    def __init__(self, server, choice: Choice | None = None) -> None:
        self.server = server
        self.stream = JobFollower(server.services, server.row(), choice or Choice()).stream()
        self.seen: list[tuple[str, dict]] = []

    def until(self, enough) -> list[tuple[str, dict]]:
        async def read() -> None:
            while not enough(self):
                self.seen += frames(await self.stream.__anext__())

        self.server.run(read())
        return self.seen

    @property
    def text(self) -> str:
        return "".join(data["text"] for event, data in self.seen if event == "log")

    @property
    def ended(self) -> bool:
        return bool(self.seen) and self.seen[-1][0] == "end"

    def close(self) -> None:
        self.server.run(self.stream.aclose())


def test_one_stream_from_waiting_to_the_end(server, spec):
    server.submit(spec("other", "sleep 9", gpu=4))
    server.running("other")
    server.submit(spec(command="echo one\nsleep 9", gpu=4))
    follower = Follower(server)
    follower.until(lambda seen: seen.seen)
    assert follower.seen[0][1]["state"] == "WAITING"
    server.end(0, name="other")
    follower.until(lambda seen: "one" in seen.text)
    server.world.print(server.handle(), "two\n")
    server.world.print(server.handle(), "oops\n", "stderr")
    follower.until(lambda seen: "two" in seen.text and "oops" in seen.text)
    server.end(3)
    follower.until(lambda seen: seen.ended)
    last = follower.seen[-1][1]
    assert (last["state"], last["exitCode"]) == ("FAILED", 255)
    logs = [data for event, data in follower.seen if event == "log"]
    assert {data["at"] for data in logs} == {"0/worker/0/0"}
    assert {data["task"] for data in logs} == {"worker/0"}
    stdout = [data for data in logs if data["stream"] == "stdout"]
    assert "".join(data["text"] for data in stdout) == "one\ntwo\n" and stdout[-1]["offset"] == 8


def test_following_goes_on_over_retries(server, spec):
    server.submit(spec(command="echo try\nsleep 9", jobRetryCount=1))
    follower = Follower(server)
    follower.until(lambda seen: seen.text.count("try") == 1)
    server.end(3)
    follower.until(lambda seen: seen.text.count("try") == 2)
    server.end(0, number=1)
    follower.until(lambda seen: seen.ended)
    places = [data["at"] for event, data in follower.seen if event == "log"]
    assert places == ["0/worker/0/0", "1/worker/0/0"]


def test_a_client_that_comes_back_reads_on(server, spec):
    server.submit(spec(command="echo first\necho second\nexit 3", jobRetryCount=1))
    server.finished()
    follower = Follower(server, Choice(positions={"0/worker/0/0/stdout": 6}))
    follower.until(lambda seen: seen.ended)
    texts = {data["at"]: data["text"] for event, data in follower.seen if event == "log"}
    assert texts == {"0/worker/0/0": "second\n", "1/worker/0/0": "first\nsecond\n"}


def test_a_choice_of_tasks_streams_and_lines(server, spec):
    server.submit(spec(command="echo a\necho b\necho c\necho d >&2", instances=2))
    server.finished()
    follower = Follower(server, Choice(streams=("stdout",), tasks=frozenset({"worker/1"}), tail=2))
    follower.until(lambda seen: seen.ended)
    assert [(data["task"], data["text"]) for event, data in follower.seen if event == "log"] == [
        ("worker/1", "b\nc\n")
    ]


def test_a_follower_that_leaves_leaves_nothing_behind(server, spec):
    server.submit(spec(command="echo hi\nsleep 9"))
    follower = Follower(server)
    follower.until(lambda seen: "hi" in seen.text)
    follower.close()
    assert not server.services.watcher._callbacks
    assert not server.services.loop.changes._callbacks
    server.end()
    server.finished()


def test_following_ends_when_the_server_does(server, spec):
    server.submit(spec(command="echo hi\nsleep 9"))
    follower = Follower(server)
    follower.until(lambda seen: "hi" in seen.text)
    server.services.closing.set()
    server.services.loop.changes.tell_all()

    async def rest() -> list[bytes]:
        return [piece async for piece in follower.stream]

    assert server.run(rest()) == []


def test_log_addresses_hold_for_two_minutes(server, spec, monkeypatch):
    server.submit(spec(command="echo out\necho err >&2"))
    server.finished()
    places = server.client.get(LOGS).json()["locations"]
    assert [place["name"] for place in places][:3] == ["stdout", "stderr", "all"]
    nobody = server.client.acting_as(None)
    by_name = {place["name"]: place["uri"] for place in places}
    assert nobody.get(by_name["stdout"]).text == "out\n"
    assert nobody.get(by_name["all"]).text == "out\nerr\n"
    assert nobody.get(by_name["stdout"].replace("/logs/stdout", "/logs/stderr")).status == 403
    assert nobody.get(by_name["stdout"].partition("?")[0]).status == 401
    for forged in ("x", "%C3%AD", "%C2%B2.0", "9" * 400 + ".x"):
        assert nobody.get(f"{LOGS}/stdout?token={forged}").status == 403
    later = time.time() + 121
    monkeypatch.setattr("openpaisdk.server.routes.logs.time.time", lambda: later)
    assert nobody.get(by_name["stdout"]).status == 403
    monkeypatch.undo()
    for query in ("tail-mode=true", "tailMode=true"):
        tail = server.client.get(f"{LOGS}?{query}").json()["locations"][0]["uri"]
        assert server.client.get(tail).status == 206


def test_missing_logs(server, spec):
    server.submit(spec("other", "sleep 9", gpu=4))
    server.submit(spec(gpu=4))
    for path in (
        LOGS,
        LOGS.replace("attempts/0/task", "attempts/9/task"),
        LOGS.replace("Index/0", "Index/x"),
    ):
        reply = server.client.get(path)
        assert (reply.status, reply.code) == (404, "NoTaskLogError")
    assert server.client.get(LOGS.replace("ann~job", "ann~none")).code == "NoJobError"
    assert server.client.get(f"{LOGS}/stdout").code == "NoTaskLogError"


def test_ranges_offsets_and_ends(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    text = "".join(f"line {number}\n" for number in range(4000))
    server.world.print(server.handle(), text)
    stdout = f"{LOGS}/stdout"

    def ranged(value: str):
        return server.client.get(stdout, headers={"range": value})

    whole = server.client.get(stdout)
    assert (whole.status, whole.text, whole.headers["accept-ranges"]) == (200, text, "bytes")
    assert whole.headers["content-type"].startswith("text/plain")
    part = ranged("bytes=0-5")
    assert (part.status, part.text, part.headers["content-range"]) == (
        206,
        "line 0",
        f"bytes 0-5/{len(text)}",
    )
    assert ranged("bytes=-4").text == text[-4:]
    assert ranged(f"bytes={len(text) - 3}-").text == text[-3:]
    assert ranged(f"bytes={len(text)}-").status == 416
    assert ranged("lines=1-2").status == 200
    tail = server.client.get(f"{stdout}?tail-mode=true")
    assert (tail.status, tail.text) == (206, text[-16384:])
    assert server.client.get(f"{stdout}?offset={len(text) - 5}").text == text[-5:]
    for bad in ("-5", "9" * 30, "x"):
        assert server.client.get(f"{stdout}?offset={bad}").status == 400
        assert server.client.get(f"{stdout}?offset={bad}&follow=true").status == 400
        assert server.client.get(f"/api/v2/jobs?offset={bad}").status == 400
        assert server.client.get(f'/api/v2/jobs/ann~job/follow?positions={{"a":{bad}}}').status == 400
    for name in ("..%2f..%2fserver.db", "intent.json", "env.sh"):
        assert server.client.get(f"{LOGS}/{name}").code == "NoTaskLogError"


def test_long_logs_are_sent_whole_and_in_pieces(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    long, errors = "0123456789abcde\n" * 200_000, "oops\n" * 2000
    for _ in range(25):
        server.world.print(server.handle(), long)
    server.world.print(server.handle(), errors, "stderr")
    open_before = set(os.listdir("/proc/self/fd"))
    for name, expected in (("stdout", 25 * long), ("all", 25 * long + errors)):
        reply = server.client.get(f"{LOGS}/{name}")
        assert reply.status == 200 and reply.headers["content-length"] == str(len(expected))
        assert reply.text == expected
    assert server.client.get(f"{LOGS}/all?tail-mode=true").text == (long + errors)[-16384:]
    server.client.get(f"{LOGS}/stdout?offset=-5")
    assert set(os.listdir("/proc/self/fd")) <= open_before
    part = Part(server.services.launcher.log_path(server.handle(), "stdout"), 0, 25 * len(long))
    largest = max(len(piece) for piece in pieces(part, CHUNK))
    assert largest <= CHUNK


def test_a_link_in_place_of_a_log_is_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    link = tmp_path / "stdout"
    link.symlink_to(secret)
    assert open_log(link) is None
    fifo = tmp_path / "stderr"
    os.mkfifo(fifo)
    assert open_log(fifo) is None


@given(st.text(), st.integers(1, 7))
def test_pieces_end_between_characters(text, size):
    data = text.encode()
    shown, held = "", b""
    for at in range(0, len(data), size):
        held += data[at : at + size]
        usable = whole_characters(held)
        assert len(held) - usable < 4
        shown += held[:usable].decode()
        held = held[usable:]
    assert shown + held.decode() == text


@given(st.binary())
def test_binary_output_never_blocks_a_piece(data):
    assert len(data) - whole_characters(data) < 4


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("", 3, ""),
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc", 2, "b\nc"),
        ("a\n", 5, "a\n"),
        ("a\nb\n", 0, ""),
        ("\n\n\n", 2, "\n\n"),
        ("x" * 200_000 + "\nlast\n", 1, "last\n"),
    ],
)
def test_the_last_lines(tmp_path, text, lines, expected):
    path = tmp_path / "log"
    path.write_text(text)
    fd = os.open(path, os.O_RDONLY)
    start = start_of_last_lines(fd, lines)
    os.close(fd)
    assert text[start:] == expected


def test_a_log_that_its_task_truncated_is_read_from_its_start(tmp_path):
    path = tmp_path / "log"
    path.write_text("many words\n")
    tail = Tail(path)
    assert tail.read() == "many words\n"
    path.write_text("new\n")
    assert tail.read() == "" and tail.read() == "new\n"
    tail.close()


def test_one_log_as_a_stream(server, spec):
    from openpaisdk.server.follow import stream_log

    server.submit(spec(command="echo one\nsleep 9"))
    server.running()
    job, path = server.row(), server.services.launcher.log_path(server.handle(), "stdout")

    def find():
        return server.services.jobs.task_attempt(job.id, 0, "worker", 0, 0)

    async def read() -> bytes:
        found = b""
        async for piece in stream_log(server.services, job, find, Tail(path, 1)):
            found += piece
            if b"ne\\n" in piece:
                server.world.print(server.handle(), "two\n")
            if b"two" in piece:
                asyncio.get_running_loop().call_soon(server.world.end, server.handle(), 0)
        return found

    data = server.run(read())
    assert [event for event, _ in frames(data)] == ["log", "log", "end"]
    assert b"id: 4\n" in data and b"id: 8\n" in data
