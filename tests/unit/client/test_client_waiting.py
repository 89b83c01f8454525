"""Waiting by long poll where the server can, by asking where it cannot."""

from __future__ import annotations

import pytest
from client_doubles import Answer

from openpaisdk.core import WaitTimeout
from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.transport import NetworkError


def detail(state):
    return Answer(200, {"name": "j", "jobStatus": {"state": state}})


def lost(reason="lost"):
    return NetworkError("away", reason=reason, sent=True)


def test_asks_with_growing_pauses(cluster, answers, clock):
    answers.table["GET /jobs/me~j"] = (
        [detail("WAITING")] * 3 + [detail("RUNNING")] * 10 + [detail("SUCCEEDED")]
    )
    assert cluster.wait("j")["jobStatus"]["state"] == "SUCCEEDED"
    assert clock.slept[:3] == [1.0, 1.5, 2.25]
    assert max(clock.slept) == 10.0


def test_back_to_waiting_is_not_the_end(cluster, answers):
    answers.table["GET /jobs/me~j"] = [detail(s) for s in ("RUNNING", "WAITING", "RUNNING", "FAILED")]
    assert cluster.wait("j")["jobStatus"]["state"] == "FAILED"


def test_until_running(cluster, answers):
    answers.table["GET /jobs/me~j"] = [detail(s) for s in ("WAITING", "RUNNING", "FAILED")]
    assert cluster.wait("j", until="running")["jobStatus"]["state"] == "RUNNING"
    with pytest.raises(UsageError, match="'tuesday'"):
        cluster.wait("j", until="tuesday")


def test_time_limit(cluster, answers, clock):
    answers.table["GET /jobs/me~j"] = detail("WAITING")
    with pytest.raises(WaitTimeout, match="j is still WAITING after 5 s") as caught:
        cluster.wait("j", timeout=5)
    assert isinstance(caught.value, TimeoutError)
    assert sum(clock.slept) == 5.0
    with pytest.raises(TimeoutError):
        cluster.wait("j", timeout=0)


def test_long_poll(cluster, answers, clock):
    answers.extra = {"OpenPAI-Extensions": "wait"}
    answers.table["GET /jobs/me~j"] = detail("WAITING")
    polls = ["RUNNING", "RUNNING", "SUCCEEDED"]

    def wait(request):
        clock.now += 60
        return detail(polls.pop(0))

    answers.table["GET /jobs/me~j/wait"] = wait
    assert cluster.wait("j")["jobStatus"]["state"] == "SUCCEEDED"
    assert answers.paths == ["GET /jobs/me~j"] + ["GET /jobs/me~j/wait"] * 3
    assert answers.calls[1].query == {"timeout": "60.000", "until": "terminal"}
    assert clock.slept == []


def test_long_poll_until_running_and_with_a_time_limit(cluster, answers, clock):
    answers.extra = {"OpenPAI-Extensions": "wait"}
    answers.table["GET /jobs/me~j"] = detail("WAITING")

    def wait(request):
        clock.now += float(request.query["timeout"])
        return detail("WAITING")

    answers.table["GET /jobs/me~j/wait"] = wait
    with pytest.raises(WaitTimeout):
        cluster.wait("j", until="running", timeout=70)
    assert [call.query for call in answers.calls[1:]] == [
        {"timeout": "60.000", "state": "WAITING"},
        {"timeout": "10.000", "state": "WAITING"},
    ]


def test_a_long_poll_that_does_not_wait_is_no_storm(cluster, answers, clock):
    answers.extra = {"OpenPAI-Extensions": "wait"}
    answers.table["GET /jobs/me~j"] = detail("RUNNING")
    answers.table["GET /jobs/me~j/wait"] = [detail("RUNNING"), detail("RUNNING"), detail("FAILED")]
    cluster.wait("j")
    assert len(clock.slept) == 2


def test_an_outage_is_waited_out(cluster, answers, clock):
    answers.table["GET /jobs/me~j"] = [detail("RUNNING")]
    outages = [lost(), lost("refused"), lost("timeout"), lost(), lost(), lost()]

    def get(request):
        if clock.now > 1000 and outages:
            return outages.pop()
        return detail("RUNNING" if outages else "SUCCEEDED")

    answers.table["GET /jobs/me~j"] = get
    assert cluster.wait("j")["jobStatus"]["state"] == "SUCCEEDED"


def test_an_outage_without_end_is_reported(cluster, answers, clock):
    answers.table["GET /jobs/me~j"] = lambda request: (
        lost("refused") if clock.now > 1000 else detail("RUNNING")
    )
    with pytest.raises(NetworkError):
        cluster.wait("j")
    assert 300 <= clock.now - 1000 < 320


def test_what_is_wrong_from_the_start_is_said_at_once(cluster, answers, clock):
    answers.table["GET /jobs/me~j"] = Answer(404, {"code": "NoJobError", "message": "no"})
    with pytest.raises(NotFoundError):
        cluster.wait("j")
    answers.table["GET /jobs/me~j"] = lost("refused")
    with pytest.raises(NetworkError):
        cluster.wait("j")
    assert clock.slept == []
