"""Every endpoint of the server, one row each: who is refused, with which status and words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from openpaisdk.server.app import collect_endpoints
from openpaisdk.server.http import Endpoint

# Everything else needs a token. Adding a line here opens a door: think twice.
OPEN = {
    "* /api/v2/info",
    "* /api/v2",
    "GET /healthz",
    "GET /api/v2/openapi.json",
    "GET /api/v2/authn/info",
    "POST /api/v2/authn/basic/login",
    "GET /prometheus/api/v1/query",
}
# Its addresses are signed; without a signature it asks for a token itself (see the test below).
SIGNED = (
    "GET /api/v2/jobs/{job}/attempts/{attempt}/taskRoles/{role}"
    "/taskIndex/{index}/attempts/{task_attempt}/logs/{name}"
)

ROWS = [(found, path) for found in collect_endpoints() for path in found.paths]


def label(row: Any) -> str:
    return f"{row[0].method} {row[1]}"


def request(client: Any, found: Endpoint, path: str) -> Any:
    filled = re.sub(r"\{[^}]*\}", "alice~x", path)
    method = "GET" if found.method == "*" else found.method
    return client.request(method, filled)


def test_what_is_open_is_listed() -> None:
    found = {f"{found.method} {found.paths[0]}" for found, _ in ROWS if found.guard == "none"}
    assert found == {*OPEN, SIGNED}


@pytest.mark.parametrize(
    ("query", "status"), [("", 401), ("?token=", 401), ("?token=1.0", 403), ("?token=x", 403)]
)
def test_an_address_of_a_log_without_a_signature_is_refused(
    anonymous: Any, services: Any, query: str, status: int
) -> None:
    services.link_key = b"k"
    path = re.sub(r"\{[^}]*\}", "0", SIGNED.removeprefix("GET "))
    assert anonymous.get(path + query).status == status


@pytest.mark.parametrize("row", [row for row in ROWS if row[0].guard != "none"], ids=label)
def test_without_a_valid_token_it_is_401(anonymous: Any, row: Any) -> None:
    for client in (anonymous, anonymous.acting_as("not.a.token")):
        reply = request(client, *row)
        assert (reply.status, reply.code) == (401, "UnauthorizedUserError")
    assert reply.json()["message"] == "Your token is invalid."


@pytest.mark.parametrize("row", [row for row in ROWS if row[0].guard in ("admin", "check-admin")], ids=label)
def test_admin_endpoints_refuse_plain_users(alice: Any, row: Any) -> None:
    reply = request(alice, *row)
    assert (reply.status, reply.code) == (403, "ForbiddenUserError")
    assert reply.json()["message"] == "Non-admin is not allow to do this operation."


@pytest.mark.parametrize("row", [row for row in ROWS if row[0].guard in ("admin", "user")], ids=label)
def test_endpoints_for_people_refuse_application_tokens(robot: Any, row: Any) -> None:
    reply = request(robot, *row)
    assert (reply.status, reply.code) == (403, "ForbiddenUserError")
    assert reply.json()["message"] == "Applications are not allowed to do this operation."


@pytest.mark.parametrize("row", [row for row in ROWS if row[0].body not in (None, bytes)], ids=label)
def test_bodies_over_their_limit_are_413(admin: Any, row: Any) -> None:
    found, path = row
    filled = re.sub(r"\{[^}]*\}", "alice~x", path)
    reply = admin.request(
        found.method, filled, body=b" " * (found.limit + 1), headers={"content-type": "text/yaml"}
    )
    assert reply.status == 413 and "code" not in reply.json()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/users/../../etc/passwd",
        "/api/v2/users/..%2f..%2fetc%2fpasswd",
        "/api/v2/users/%00",
        "/api/v2/groups/%2e%2e",
        "/api/v2/users/" + "a" * 5000,
    ],
)
def test_odd_names_in_paths_find_nothing(admin: Any, path: str) -> None:
    assert admin.get(path).status in (400, 404)


def test_vs_code_asks_for_a_config_without_a_token(anonymous: Any) -> None:
    reply = anonymous.get("/api/v2/jobs/protocolversion/config")
    assert (reply.status, reply.code) == (401, "UnauthorizedUserError")


def test_the_info_endpoints_answer_any_method(anonymous: Any) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        for path in ("/api/v1", "/api/v2/info/"):
            found = anonymous.request(method, path).json()
            assert found["name"] == "PAI RESTful API" and found["launcherType"] == "k8s"
            assert found["authnMethod"] == "basic" and "follow" in found["extensions"]
        assert anonymous.request(method, "/api/v2").headers["content-type"].startswith("text/plain")
    assert anonymous.get("/healthz").text.startswith("Pylon ready")
