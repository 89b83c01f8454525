"""Following by events from our server: lines, states, and broken connections."""

from __future__ import annotations

import json

import pytest
from client_doubles import Answer

from openpaisdk.core import LogLine, StateChange
from openpaisdk.errors import NotFoundError
from openpaisdk.transport import NetworkError


def event(kind, **data):
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def log(text, offset, task="worker/0", stream="stdout", attempt=0):
    return event("log", task=task, at=f"0/{task}/{attempt}", stream=stream, offset=offset, text=text)


def state(name, sub="AttemptRunning"):
    return event("state", state=name, subState=sub, attempt=0, exitCode=None)


END = event("end", state="SUCCEEDED", subState="Completed", attempt=0, exitCode=0)


def stream(*pieces):
    """A stream that breaks after its last piece unless that is the end."""

    def chunks():
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    return Answer(200, chunks(), {"content-type": "text/event-stream"})


def shown(records):
    return [
        f"{r.task} {r.stream} {r.text}" if isinstance(r, LogLine) else f"{r.state}{'!' if r.final else ''}"
        for r in records
    ]


PATH = "GET /jobs/me~j/follow"


def test_lines_and_states(cluster, answers):
    answers.table[PATH] = stream(
        b": hello\n\n",
        state("WAITING", "AttemptPreparing"),
        state("RUNNING"),
        log("one\ntw", 6),
        log("err\n", 4, stream="stderr"),
        log("o\n\nthree", 14),
        state("SUCCEEDED"),
        END,
    )
    records = list(cluster.follow("j", tail=5, tasks=["worker/0"]))
    assert shown(records) == [
        "WAITING",
        "RUNNING",
        "worker/0 stdout one",
        "worker/0 stderr err",
        "worker/0 stdout two",
        "worker/0 stdout ",
        "worker/0 stdout three",
        "SUCCEEDED!",
    ]
    assert records[-1].exit_code == 0
    assert answers.calls[0].query == {"streams": "stdout,stderr", "tasks": "worker/0", "tail": "5"}
    assert records[2].as_dict() == {"kind": "log", "task": "worker/0", "stream": "stdout", "text": "one"}
    assert records[-1].as_dict()["final"] is True


def test_pieces_as_they_were_written(cluster, answers):
    answers.table[PATH] = stream(log("10%\r", 4), log("20%\r", 8), END)
    assert [r.text for r in cluster.follow("j", lines=False) if isinstance(r, LogLine)] == ["10%\r", "20%\r"]


def test_goes_on_where_it_broke_off(cluster, answers, clock):
    lost = NetworkError("lost", reason="lost", sent=True)
    answers.table[PATH] = [
        stream(state("RUNNING"), log("a\nb", 3), lost),
        Answer(503, b""),
        stream(state("RUNNING"), log("b", 3), log("c\n", 5)),
        stream(log("d\n", 7), END),
    ]
    assert shown(cluster.follow("j", tail=3)) == [
        "RUNNING",
        "worker/0 stdout a",
        "worker/0 stdout bc",
        "worker/0 stdout d",
        "SUCCEEDED!",
    ]
    queries = [call.query for call in answers.calls]
    assert [json.loads(query.get("positions", "{}")) for query in queries] == [
        {},
        {"0/worker/0/0/stdout": 3},
        {"0/worker/0/0/stdout": 3},
        {"0/worker/0/0/stdout": 5},
    ]
    assert "tail" not in queries[1]
    assert clock.slept == [0.1, 0.2, 0.1]


def test_many_positions_go_into_the_body(cluster, answers):
    logs = [log("x\n", 2, task=f"worker/{number}") for number in range(300)]
    answers.table[PATH] = stream(*logs)
    answers.table["POST /jobs/me~j/follow"] = stream(END)
    assert len(list(cluster.follow("j"))) == 301
    assert answers.calls[1].data["positions"]["0/worker/299/0/stdout"] == 2
    assert answers.calls[1].data["streams"] == ["stdout", "stderr"]


def test_gives_up_after_a_long_outage(make_cluster, answers, clock):
    said = []
    answers.table[PATH] = [stream(state("RUNNING")), NetworkError("away", reason="refused", sent=False)]
    answers.table[PATH] = lambda request: (
        stream(state("RUNNING")) if clock.now == 1000 else NetworkError("away", reason="refused", sent=False)
    )
    with pytest.raises(NetworkError):
        list(make_cluster(notice=said.append).follow("j"))
    assert 300 <= clock.now - 1000 < 310
    assert said[0] == "away; following goes on as soon as it is back"


def test_a_missing_job_is_said_at_once(cluster, answers, clock):
    answers.table[PATH] = Answer(404, {"code": "NoJobError", "message": "no job"})
    with pytest.raises(NotFoundError):
        list(cluster.follow("j"))
    assert clock.slept == []


def test_state_records():
    change = StateChange("FAILED", "Completed", 1, 255, True)
    assert "FAILED" in repr(change) and "255" in repr(change)
    assert "worker/0" in repr(LogLine("worker/0", "stdout", "x", "0/worker/0/0", 1))
