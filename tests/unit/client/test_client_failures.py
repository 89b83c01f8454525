"""Error answers become the right error, with words and a way on."""

from __future__ import annotations

import json

import pytest
from client_doubles import Answer

from openpaisdk import errors


def envelope(code, message="said"):
    return {"code": code, "message": message}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, envelope("InvalidParametersError"), errors.UsageError, "InvalidParametersError"),
        (400, envelope("NoUserError"), errors.NotFoundError, "NoUserError"),
        (400, envelope("NoGroupError"), errors.NotFoundError, "NoGroupError"),
        (400, envelope("NoVirtualClusterError"), errors.NotFoundError, "NoVirtualClusterError"),
        (400, envelope("NotImplementedError"), errors.UsageError, "NotImplementedError"),
        (400, envelope("NoEnoughQuotaError"), errors.QuotaError, "NoEnoughQuotaError"),
        (400, envelope("IncorrectPasswordError"), errors.LoginError, "IncorrectPasswordError"),
        (401, envelope("UnauthorizedUserError"), errors.LoginError, "UnauthorizedUserError"),
        (403, envelope("ForbiddenUserError"), errors.AccessError, "ForbiddenUserError"),
        (403, envelope("RemoveAdminError"), errors.AccessError, "RemoveAdminError"),
        (404, envelope("NoJobError"), errors.NotFoundError, "NoJobError"),
        (404, envelope("NoStorageError"), errors.NotFoundError, "NoStorageError"),
        (409, envelope("ConflictJobError"), errors.ConflictError, "ConflictJobError"),
        (409, envelope("SomethingNew"), errors.ConflictError, "SomethingNew"),
        (409, {"code": "QuotaError", "message": "x"}, errors.QuotaError, "QuotaError"),
        (413, {"message": "request entity too large"}, errors.UsageError, "InvalidParametersError"),
        (500, {"message": "bad indentation"}, errors.ServerError, "UnknownError"),
        (500, envelope("UnknownError"), errors.ServerError, "UnknownError"),
        (500, envelope("ECONNREFUSED"), errors.ServerError, "ECONNREFUSED"),
        (501, "history is off", errors.ServerError, "UnknownError"),
        (418, {}, errors.UsageError, "InvalidParametersError"),
        (404, b"null", errors.NotFoundError, "NotFoundError"),
    ],
)
def test_classes(cluster, answers, status, body, kind, code):
    answers.table["GET /users/x"] = Answer(status, body)
    with pytest.raises(errors.OpenPAIError) as caught:
        cluster.get_user("x")
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert caught.value.http_status == status
    assert caught.value.message


def test_the_message_is_the_servers(cluster, answers):
    answers.table["GET /users/x"] = Answer(400, envelope("NoUserError", "User x is not found."))
    with pytest.raises(errors.NotFoundError, match=r"User x is not found\."):
        cluster.get_user("x")


def test_a_hint_from_the_server_is_kept(cluster, answers):
    answers.table["GET /users/x"] = Answer(409, {"code": "ConflictError", "message": "m", "hint": "do this"})
    with pytest.raises(errors.ConflictError) as caught:
        cluster.get_user("x")
    assert caught.value.hint == "do this"


def test_validation_errors_are_readable(cluster, answers):
    found = [
        {"keyword": "pattern", "dataPath": ".name", "message": 'should match pattern "^x$"', "params": {}},
        {
            "keyword": "additionalProperties",
            "dataPath": ".taskRoles['w']",
            "message": "should NOT have additional properties",
            "params": {"additionalProperty": "instance"},
        },
    ]
    answers.table["GET /users/x"] = Answer(400, envelope("InvalidProtocolError", json.dumps(found)))
    with pytest.raises(errors.InvalidJobError) as caught:
        cluster.get_user("x")
    assert caught.value.problems == [
        'name: should match pattern "^x$"',
        "taskRoles['w']: should NOT have additional properties: 'instance'",
    ]
    answers.table["GET /users/x"] = Answer(400, envelope("InvalidProtocolError", "a sentence"))
    with pytest.raises(errors.InvalidJobError, match="a sentence"):
        cluster.get_user("x")


@pytest.mark.parametrize("status", [200, 400, 403, 404, 500])
def test_a_web_page_instead_of_data(cluster, answers, status, clock):
    page = b"<!DOCTYPE html><html><body>Welcome</body></html>"
    answers.table["GET /users/x"] = Answer(status, page, {"content-type": "text/html; charset=utf-8"})
    with pytest.raises(errors.UnavailableError, match="answered with a web page") as caught:
        cluster.get_user("x")
    assert "pai_uri" in caught.value.hint
    assert clock.slept == []


def test_something_that_is_not_json(cluster, answers):
    answers.table["GET /users/x"] = Answer(200, b"PAI", {"content-type": "text/plain"})
    with pytest.raises(errors.UnavailableError, match="not JSON"):
        cluster.get_user("x")


@pytest.mark.parametrize("found", ["text", 5, None, ["a list"], True])
def test_json_of_another_shape(cluster, answers, found):
    answers.table["GET /users/x"] = Answer(200, json.dumps(found).encode())
    with pytest.raises(errors.UnavailableError, match="not what OpenPAI answers"):
        cluster.get_user("x")
    answers.table["GET /jobs"] = Answer(200, json.dumps(found).encode())
    with pytest.raises(errors.UnavailableError, match=r"not what OpenPAI answers|not a list of jobs"):
        cluster.jobs()


def test_an_error_of_the_server_is_called_one(cluster, answers):
    answers.table["GET /users/x"] = Answer(500, envelope("UnknownError", "boom"))
    with pytest.raises(
        errors.ServerError, match=r"pai\.example\.com answered .* \(HTTP 500\): boom"
    ) as caught:
        cluster.get_user("x")
    assert "try again" in caught.value.hint


def test_whose_token_is_refused(answers, clock):
    from openpaisdk.config import ClusterConfig
    from openpaisdk.core import Cluster

    answers.table["GET /jobs"] = Answer(401, envelope("UnauthorizedUserError", "Your token is invalid."))
    for alias, hint in {"lab": "opai cluster add -a lab", "environment": "OPAI_TOKEN"}.items():
        config = ClusterConfig(alias, "http://pai.example.com", user="me", token="t")
        said = r"http://pai\.example\.com refuses the token of 'me': Your token is invalid\."
        with pytest.raises(errors.LoginError, match=said) as caught:
            Cluster(config, transport=answers, sleep=clock.sleep).jobs()
        assert hint in caught.value.hint


def test_who_has_not_logged_in_is_told_how(answers, clock):
    from openpaisdk.config import ClusterConfig
    from openpaisdk.core import Cluster

    said = {"code": "UnauthorizedUserError", "message": "Guest is not allowed.", "hint": "send a header"}
    answers.table["GET /jobs"] = Answer(401, said)
    config = ClusterConfig("lab", "http://pai.example.com", user="me")
    with pytest.raises(errors.LoginError, match="Guest") as caught:
        Cluster(config, transport=answers, sleep=clock.sleep).jobs()
    assert "opai cluster add -a lab --user" in caught.value.hint


def test_a_server_that_keeps_silent_is_asked_once_more(make_cluster, clock):
    from openpaisdk.transport import NetworkError

    said, asked = [], []

    def silent(method, url, headers, body):
        asked.append(url)
        raise NetworkError("no answer within 30 s", reason="timeout", sent=True)

    with pytest.raises(errors.UnavailableError, match="no answer"):
        make_cluster(transport=silent, notice=said.append).jobs()
    assert len(asked) == 2
    assert said == ["no answer within 30 s; trying again in 0.5 s"]


def test_a_redirect_names_the_place(cluster, answers):
    answers.table["GET /users/x"] = Answer(301, b"", {"location": "https://pai.example.com/"})
    with pytest.raises(errors.UnavailableError, match=r"to https://pai\.example\.com/"):
        cluster.get_user("x")


def test_a_gateway_without_server_is_asked_again(cluster, answers, clock):
    page = Answer(502, b"<html>502</html>", {"content-type": "text/html"})
    answers.table["GET /users/x"] = [page, page, Answer(200, {"username": "x"})]
    assert cluster.get_user("x") == {"username": "x"}
    assert clock.slept == [0.5, 1.0]
    answers.table["GET /users/x"] = page
    said = r"gateway of http://pai\.example\.com answered HTTP 502 \(Bad Gateway\)"
    with pytest.raises(errors.UnavailableError, match=said) as caught:
        cluster.get_user("x")
    assert caught.value.hint


def test_too_many_requests(make_cluster, answers, clock):
    said = []
    cluster = make_cluster(notice=said.append)
    busy = Answer(429, b"Too many requests", {"content-type": "text/html", "retry-after": "60"})
    answers.table["GET /jobs"] = [busy, Answer(200, [])]
    assert cluster.jobs() == []
    assert clock.slept == [60.0]
    assert "trying again in 60 s" in said[0]
    answers.table["GET /jobs"] = busy
    with pytest.raises(errors.RateLimitedError, match="too many requests") as caught:
        cluster.jobs()
    assert caught.value.retry_after == 60.0


def test_writing_calls_that_are_not_safe_are_sent_once(cluster, answers, clock):
    answers.table["POST /users"] = Answer(503, b"", {})
    with pytest.raises(errors.UnavailableError):
        cluster.create_user("u", "password")
    assert len(answers.calls) == 1
    assert clock.slept == []


def test_writing_calls_that_are_safe_are_repeated(cluster, answers):
    answers.table["PUT /jobs/me~j/executionType"] = [Answer(503, b""), Answer(202, {"status": 202})]
    assert cluster.stop("j") == {"status": 202}
