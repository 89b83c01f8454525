"""The HTTP rules that hold for every endpoint: paths, bodies, limits, CORS, ETags and errors."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest
from starlette.responses import Response
from starlette.routing import Route

from openpaisdk.errors import ConflictError
from openpaisdk.server.app import Application, limits_in_force
from openpaisdk.server.http import EXTENSIONS, Answer, Call, endpoint
from openpaisdk.server.ratelimit import RateLimits
from support.asgi import Client


class Body(msgspec.Struct, forbid_unknown_fields=True):
    word: str
    number: int = 0


class Query(msgspec.Struct):
    limit: int = 5
    tail: bool = msgspec.field(default=False, name="tail-mode")


@endpoint("PUT", "/api/v2/things/{thing}/echo", guard="none", body=Body)
async def echo(call: Call) -> Any:
    return {"thing": call.path["thing"], "word": call.body.word, "number": call.body.number}


@endpoint("POST", "/api/v2/text", guard="none", body=str)
async def text(call: Call) -> Any:
    return {"text": call.body}


@endpoint("POST", "/api/v2/raw", guard="none", body=bytes, limit=10)
async def raw(call: Call) -> Any:
    return {"size": len(call.body)}


@endpoint("GET", "/api/v2/query", guard="none", query=Query)
async def query(call: Call) -> Any:
    return {"limit": call.query.limit, "tail": call.query.tail}


@endpoint("GET", "/api/v2/fails", guard="none")
async def fails(call: Call) -> Any:
    raise RuntimeError("secret detail")


@endpoint("GET", "/api/v2/refuses", guard="none")
async def refuses(call: Call) -> Any:
    raise ConflictError("It is taken.", code="ConflictJobError", hint="take another")


@endpoint("GET", "/api/v2/answers", guard="none")
async def answers(call: Call) -> Any:
    return Answer([1], status=202, headers={"Location": "/there\r\nX-Injected: 1"})


@endpoint("GET", "/api/v2/streams", guard="none")
async def streams(call: Call) -> Any:
    return Response("plain", headers={"x-own": "1"})


@endpoint("GET", "/api/v2/jobs", guard="check", rate="list")
async def limited(call: Call) -> Any:
    return []


@pytest.fixture
def client(services: Any) -> Any:
    def elsewhere(request: Any) -> Response:
        return Response("page " + request.path_params["name"])

    found = [echo, text, raw, query, fails, refuses, answers, streams, limited]
    made = Client(Application(services, found, [Route("/pages/{name}", elsewhere)]))
    yield made
    made.close()


SENT = b'{"word": "hi", "number": 2}'


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/things/A~b/echo",
        "/rest-server/api/v2/things/A~b/echo",
        "/API/v2/Things/A%7Eb/ECHO/",
        "/api//v2/things/A~b/echo",
    ],
)
def test_paths_mind_neither_prefix_case_slash_nor_encoding(client: Any, path: str) -> None:
    assert client.put(path, body=SENT, headers={"content-type": "application/json"}).json() == {
        "thing": "A~b",
        "word": "hi",
        "number": 2,
    }


def test_an_encoded_slash_stays_inside_its_segment(client: Any) -> None:
    reply = client.put("/api/v2/things/..%2F..%2Fetc/echo", {"word": ""})
    assert reply.json()["thing"] == "../../etc"


@pytest.mark.parametrize("kind", ["application/json", "text/plain;charset=UTF-8", "text/yaml", None])
def test_json_comes_under_many_names(client: Any, kind: str | None) -> None:
    headers = {"content-type": kind} if kind else {}
    assert client.put("/api/v2/things/a/echo", body=SENT, headers=headers).json()["number"] == 2


def test_forms_are_converted(client: Any) -> None:
    assert client.put("/api/v2/things/a/echo", form={"word": "hi", "number": 3}).json()["number"] == 3


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"{",
        b'{"word": 1}',
        b'{"word": "a", "more": 1}',
        b'{"word": "\xff"}',
        b"[" * 50_000,
    ],
)
def test_bodies_that_are_not_valid(client: Any, body: bytes) -> None:
    reply = client.put("/api/v2/things/a/echo", body=body)
    assert (reply.status, reply.code) == (400, "InvalidParametersError")


def test_a_body_over_100_kb_is_413_without_a_code(client: Any) -> None:
    at_the_limit = b" " * (100 * 1024)
    assert client.post("/api/v2/text", body=at_the_limit, headers={"content-type": "text/yaml"}).status == 200
    for headers in ({"content-type": "text/yaml"}, {"content-type": "text/yaml", "content-length": "999999"}):
        reply = client.post("/api/v2/text", body=at_the_limit + b" ", headers=headers)
        assert reply.status == 413 and set(reply.json()) == {"message"}
    assert client.post("/api/v2/raw", body=b"x" * 10).json() == {"size": 10}
    assert client.post("/api/v2/raw", body=b"x" * 11).status == 413


def test_text_bodies_need_a_text_type(client: Any) -> None:
    assert client.post("/api/v2/text", body=b"a: 1", headers={"content-type": "text/yaml"}).json() == {
        "text": "a: 1"
    }
    assert client.post("/api/v2/text", body=b"{}", headers={"content-type": "application/json"}).json() == {
        "text": None
    }
    assert client.post("/api/v2/text", body=b"\xff", headers={"content-type": "text/plain"}).status == 400


def test_queries_are_converted_and_unknown_names_ignored(client: Any) -> None:
    assert client.get("/api/v2/query?limit=7&tail-mode=true&other=1").json() == {"limit": 7, "tail": True}
    assert client.get("/api/v2/query").json() == {"limit": 5, "tail": False}
    assert client.get("/api/v2/query?limit=many").code == "InvalidParametersError"


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v3", "/api/v2/nothing", "/view.html", "/api/v2/things/a"]
)
def test_an_unknown_path_is_404_no_api(client: Any, path: str) -> None:
    reply = client.get(path)
    assert (reply.status, reply.code) == (404, "NoApiError")


def test_an_unknown_method_is_404_no_api(client: Any) -> None:
    assert client.delete("/api/v2/query").code == "NoApiError"


def test_other_routes_come_after_endpoints(client: Any) -> None:
    for prefix in ("", "/rest-server"):
        reply = client.get(prefix + "/pages/one")
        assert reply.text == "page one" and reply.headers["access-control-allow-origin"] == "*"


def test_a_failure_is_logged_and_tells_nothing(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reply = client.get("/api/v2/fails")
    assert (reply.status, reply.code) == (500, "UnknownError")
    assert "secret" not in reply.text and "secret detail" in caplog.text


def test_the_error_envelope(client: Any) -> None:
    reply = client.get("/api/v2/refuses")
    assert reply.status == 409
    assert reply.json() == {"code": "ConflictJobError", "message": "It is taken.", "hint": "take another"}


def test_every_answer_carries_cors_and_the_extensions(client: Any) -> None:
    for path in ("/api/v2/query", "/api/v2/nothing", "/api/v2/fails", "/api/v2/streams", "/api/v2/answers"):
        headers = client.get(path).headers
        assert headers["access-control-allow-origin"] == "*"
        assert headers["openpai-extensions"] == ",".join(EXTENSIONS)


def test_preflight(client: Any) -> None:
    asked = {"access-control-request-headers": "authorization,content-type", "origin": "http://portal"}
    for path in ("/api/v2/jobs", "/api/v2/nothing"):
        reply = client.request("OPTIONS", path, headers=asked)
        assert reply.status == 204 and reply.body == b""
        assert reply.headers["access-control-allow-methods"] == "GET,HEAD,PUT,PATCH,POST,DELETE"
        assert reply.headers["access-control-allow-headers"] == "authorization,content-type"


def test_conditional_get(client: Any) -> None:
    first = client.get("/api/v2/query")
    etag = first.headers["etag"]
    assert etag.startswith('W/"')
    again = client.get("/api/v2/query", headers={"if-none-match": f'"x", {etag}'})
    assert again.status == 304 and again.body == b"" and again.headers["etag"] == etag
    assert client.get("/api/v2/query?limit=6", headers={"if-none-match": etag}).status == 200


def test_head_has_no_body(client: Any) -> None:
    reply = client.request("HEAD", "/api/v2/query")
    assert reply.status == 200 and reply.body == b"" and int(reply.headers["content-length"]) > 0


def test_headers_cannot_be_injected(client: Any) -> None:
    reply = client.get("/api/v2/answers")
    assert reply.status == 202
    assert all(b"\r" not in value and b"\n" not in value for _, value in reply.raw_headers)
    assert "x-injected" not in reply.headers


def test_lifespan_is_answered(client: Any) -> None:
    received = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> Any:
        return received.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    client.run(client.app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def limited_client(services: Any, limits: str) -> Client:
    services.settings.rate_limits = limits
    return Client(Application(services, [limited, query]))


def test_the_whole_api_is_limited_by_address(services: Any) -> None:
    client = limited_client(services, "api=2,list=0,submit=0")
    first, second, third = (client.get("/api/v2/query") for _ in range(3))
    assert first.headers["x-ratelimit-limit"] == "2" and first.headers["x-ratelimit-remaining"] == "1"
    assert int(first.headers["x-ratelimit-reset"]) > 1_700_000_000
    assert (second.status, third.status) == (200, 429)
    assert third.headers["retry-after"] == "60" and third.headers["content-type"].startswith("text/html")
    assert b"{" not in third.body
    assert client.get("/api/v2/query", client="192.0.2.2").status == 200
    client.close()


def test_lists_are_limited_by_user_and_their_headers_win(services: Any) -> None:
    client = limited_client(services, "api=100,list=1,submit=0")
    tokens = services.accounts.tokens
    alice, bob = (client.acting_as(client.run(tokens.issue(name, "login"))) for name in ("alice", "bob"))
    assert client.get("/api/v2/jobs").status == 401
    first = alice.get("/api/v2/jobs")
    assert first.headers["x-ratelimit-limit"] == "1"
    assert (first.status, alice.get("/api/v2/jobs").status, bob.get("/api/v2/jobs").status) == (200, 429, 200)
    client.close()


@pytest.mark.parametrize(
    ("host", "chosen", "expected"),
    [
        ("127.0.0.1", None, None),
        ("::1", None, None),
        ("localhost", None, None),
        ("0.0.0.0", None, RateLimits()),
        ("127.0.0.1", "on", RateLimits(600, 120, 3600)),
        ("0.0.0.0", "off", None),
        ("0.0.0.0", "api=1", RateLimits(api_per_minute=1)),
        ("0.0.0.0", RateLimits(list_per_minute=3), RateLimits(list_per_minute=3)),
    ],
)
def test_which_limits_hold(services: Any, host: str, chosen: Any, expected: Any) -> None:
    services.settings.host, services.settings.rate_limits = host, chosen
    assert limits_in_force(services.settings) == expected
