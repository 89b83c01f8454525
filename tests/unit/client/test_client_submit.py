"""A job is submitted once, whatever the answers look like."""

from __future__ import annotations

import json

import pytest
from client_doubles import Answer

from openpaisdk.errors import ConflictError, InvalidJobError, RateLimitedError, ServerError, UnavailableError
from openpaisdk.transport import NetworkError

SPEC = {"protocolVersion": 2, "name": "j", "type": "job", "taskRoles": {"worker": {"instances": 1}}}
ACCEPTED = Answer(202, {"status": 202, "message": "accepted"})
GATEWAY = Answer(504, b"<html>", {"content-type": "text/html"})
CONFLICT = Answer(409, {"code": "ConflictJobError", "message": "Job name me~j already exists."})
MISSING = Answer(404, {"code": "NoJobError", "message": "no job"})
DATE = {"date": "Thu, 01 Jan 2026 00:00:10 GMT"}
NOW_MS = 1767225610_000


def lost():
    return NetworkError("lost", reason="lost", sent=True)


class Server:
    """Accepts jobs although its answers say otherwise, as told."""

    def __init__(self, answers, replies, *, keeps=True, submitted=NOW_MS):
        self.replies = list(replies)
        self.stored = None
        self.keeps = keeps
        self.submitted = submitted
        answers.table["POST /jobs"] = self.post
        answers.table["GET /jobs/me~j"] = self.get
        answers.table["GET /jobs/me~j/config"] = self.config

    def post(self, request):
        reply = self.replies.pop(0)
        if reply is not ACCEPTED and self.stored is not None:
            return reply
        if self.keeps or reply is ACCEPTED:
            self.stored = json.loads(request.body)
        return reply

    def get(self, request):
        if self.stored is None:
            return MISSING
        return Answer(200, {"jobStatus": {"submissionTime": self.submitted, "state": "WAITING"}}, DATE)

    def config(self, request):
        return MISSING if self.stored is None else Answer(200, {**self.stored, "secrets": "******"})


def posts(answers):
    return [call for call in answers.calls if call.method == "POST"]


def test_what_goes_out(cluster, answers):
    answers.table["POST /jobs"] = ACCEPTED
    assert cluster.submit(SPEC) == {"user": "me", "name": "j", "status": 202, "message": "accepted"}
    call = answers.calls[0]
    assert call.headers["content-type"] == "text/yaml"
    assert len(call.headers["idempotency-key"]) == 32
    assert json.loads(call.body) == SPEC
    cluster.submit(SPEC, key="mine")
    assert answers.calls[1].headers["idempotency-key"] == "mine"


def test_text_goes_out_as_it_is(cluster, answers):
    answers.table["POST /jobs"] = ACCEPTED
    text = "# my job\nname: j\nprotocolVersion: 2\n"
    assert cluster.submit(text)["name"] == "j"
    assert answers.calls[0].body == text.encode()


def test_secrets_go_out_as_yaml_because_openpai_shows_json_secrets(cluster, answers):
    answers.table["POST /jobs"] = ACCEPTED
    cluster.submit({**SPEC, "secrets": {"a": "b"}})
    assert b"\nsecrets:\n" in answers.calls[0].body


def test_bad_specs_are_not_sent(cluster, answers):
    with pytest.raises(InvalidJobError, match="no name"):
        cluster.submit({"type": "job"})
    with pytest.raises(InvalidJobError, match="at most 102400"):
        cluster.submit({**SPEC, "extras": {"x": "y" * 102400}})
    assert answers.calls == []


@pytest.mark.parametrize("failure", [GATEWAY, lost(), Answer(500, {"message": "x"}), Answer(503, b"")])
def test_accepted_in_spite_of_an_error(cluster, answers, failure):
    Server(answers, [failure])
    assert cluster.submit(SPEC)["name"] == "j"
    assert len(posts(answers)) == 1


def test_not_accepted_and_tried_again_with_the_same_key(cluster, answers, clock):
    Server(answers, [GATEWAY, lost(), ACCEPTED], keeps=False)
    assert cluster.submit(SPEC)["name"] == "j"
    keys = {call.headers["idempotency-key"] for call in posts(answers)}
    assert (len(posts(answers)), len(keys)) == (3, 1)
    assert clock.slept == [0.5, 1.0]
    looked = [path for path in answers.paths if path == "GET /jobs/me~j"]
    assert len(looked) == 2


def test_accepted_only_after_the_look(cluster, answers):
    """The gateway gave up, the look found nothing, and then the job was there after all."""
    server = Server(answers, [GATEWAY, CONFLICT], keeps=False)
    real = server.post

    def post(request):
        reply = real(request)
        if reply is CONFLICT:
            server.stored = json.loads(request.body)
        return reply

    answers.table["POST /jobs"] = post
    assert cluster.submit(SPEC)["name"] == "j"


def test_a_name_that_is_taken(cluster, answers):
    answers.table["POST /jobs"] = CONFLICT
    with pytest.raises(ConflictError, match="already exists") as caught:
        cluster.submit(SPEC)
    assert "-j" in caught.value.hint
    assert len(answers.calls) == 1


def test_another_job_of_that_name_is_not_taken_for_ours(cluster, answers):
    server = Server(answers, [GATEWAY, CONFLICT], keeps=False)
    server.stored = {**SPEC, "taskRoles": {}}
    with pytest.raises(ConflictError):
        cluster.submit(SPEC)


def test_an_older_job_with_the_same_spec_is_not_taken_for_ours(cluster, answers):
    server = Server(answers, [GATEWAY, CONFLICT], submitted=NOW_MS - 60_000)
    server.stored = dict(SPEC)
    with pytest.raises(ConflictError):
        cluster.submit(SPEC)


def test_servers_without_submission_time(cluster, answers):
    Server(answers, [GATEWAY], submitted=None)
    assert cluster.submit(SPEC)["name"] == "j"


def test_an_error_of_the_server_is_not_repeated(cluster, answers, clock):
    Server(answers, [Answer(500, {"code": "UnknownError", "message": "NaN"})], keeps=False)
    with pytest.raises(ServerError, match="NaN"):
        cluster.submit(SPEC)
    assert len(posts(answers)) == 1
    assert clock.slept == []


def test_nothing_is_looked_up_when_nothing_was_sent(cluster, answers):
    answers.table["POST /jobs"] = NetworkError("refused", reason="refused", sent=False)
    with pytest.raises(NetworkError):
        cluster.submit(SPEC)
    assert answers.paths == ["POST /jobs"]


def test_too_many_requests_are_waited_out(make_cluster, answers, clock):
    said = []
    busy = Answer(429, b"slow down", {"content-type": "text/html", "retry-after": "60"})
    answers.table["POST /jobs"] = [busy, ACCEPTED]
    assert make_cluster(notice=said.append).submit(SPEC)["name"] == "j"
    assert clock.slept == [60.0]
    assert answers.paths == ["POST /jobs", "POST /jobs"]
    assert "submitting j again in 60 s" in said[0]
    answers.table["POST /jobs"] = busy
    with pytest.raises(RateLimitedError):
        make_cluster().submit(SPEC)


def test_a_server_that_went_away_is_looked_at_before_the_next_try(cluster, answers):
    server = Server(answers, [lost()])
    looks = [lost()] * 3 + [None]

    def get(request):
        look = looks.pop(0)
        return look if look is not None else server.get(request)

    answers.table["GET /jobs/me~j"] = get
    assert cluster.submit(SPEC)["name"] == "j"
    assert len(posts(answers)) == 1


def test_a_server_that_stays_away_leaves_doubt(cluster, answers):
    answers.table["POST /jobs"] = lost()
    answers.table["GET /jobs/me~j"] = lambda request: NetworkError("refused", reason="refused", sent=False)
    with pytest.raises(UnavailableError) as caught:
        cluster.submit(SPEC)
    assert "may have been accepted" in caught.value.hint
    assert len(posts(answers)) == 1


def test_a_web_page_is_not_an_acceptance(cluster, answers):
    answers.table["POST /jobs"] = Answer(200, b"<html>portal</html>", {"content-type": "text/html"})
    with pytest.raises(UnavailableError, match="web page"):
        cluster.submit(SPEC)
    assert len(posts(answers)) == 1


def test_a_key_gives_the_same_job_on_our_server(cluster, answers):
    answers.extra = {"OpenPAI-Extensions": "submit-key"}
    Server(
        answers,
        [Answer(503, b""), Answer(202, {"status": 202, "user": "me", "name": "j", "again": True})],
        keeps=False,
    )
    assert cluster.submit(SPEC, key="k")["again"] is True
    assert [call.headers["idempotency-key"] for call in posts(answers)] == ["k", "k"]
