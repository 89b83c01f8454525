"""Logging in and out, tokens, and what makes a token valid."""

from __future__ import annotations

import base64
from typing import Any

import jwt
import pytest

from openpaisdk.server.accounts import Accounts, account_name

LOGIN = "/api/v2/authn/basic/login"


@pytest.mark.parametrize(
    "path", [LOGIN, "/api/v1/authn/basic/login", "/api/v1/token", "/api/v2/tokens", "/API/V1/Token/"]
)
@pytest.mark.parametrize("how", ["form", "data"])
def test_login_takes_a_form_or_json_at_every_address(anonymous: Any, path: str, how: str) -> None:
    sent = {"username": "alice", "password": "alice-secret", "expiration": 4000}
    reply = anonymous.post(path, **{how: sent})
    assert reply.status == 200
    found = reply.json()
    assert (found["user"], found["admin"]) == ("alice", False)
    assert "hasGitHubPAT" not in found
    claims = jwt.decode(found["token"], options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 7 * 24 * 3600
    assert claims["username"] == "alice" and claims["application"] is False and claims["jobSpecific"] is False
    assert claims["encodedFrameworkName"] == ""


def test_login_accepts_json_sent_as_plain_text(anonymous: Any) -> None:
    body = b'{"username": "admin", "password": "admin-secret"}'
    reply = anonymous.post(LOGIN, body=body, headers={"content-type": "text/plain;charset=UTF-8"})
    assert reply.status == 200 and reply.json()["admin"] is True


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        ({"username": "nobody", "password": "password"}, "NoUserError", "User nobody is not found."),
        ({"username": "alice", "password": "password"}, "IncorrectPasswordError", "Password is incorrect."),
        ({"username": "alice", "password": "short"}, "InvalidParametersError", None),
        ({"username": "a b", "password": "password"}, "InvalidParametersError", None),
        ({"username": "alice"}, "InvalidParametersError", None),
        ({"username": "alice", "password": "alice-secret", "extra": 1}, "InvalidParametersError", None),
        ({"username": "alice", "password": "alice-secret", "expiration": 10}, "InvalidParametersError", None),
    ],
)
def test_refused_logins(anonymous: Any, sent: Any, code: str, message: str | None) -> None:
    reply = anonymous.post(LOGIN, sent)
    assert (reply.status, reply.code) == (400, code)
    if message is not None:
        assert reply.json()["message"] == message


def test_a_user_without_a_password_cannot_log_in(anonymous: Any, accounts: Accounts) -> None:
    accounts.ensure_local_user("me")
    assert anonymous.post(LOGIN, {"username": "me", "password": "......"}).code == "IncorrectPasswordError"


def test_two_logins_in_the_same_second_are_two_sessions(anonymous: Any) -> None:
    sent = {"username": "alice", "password": "alice-secret"}
    first, second = (anonymous.post(LOGIN, sent).json()["token"] for _ in range(2))
    assert first != second
    assert anonymous.acting_as(first).delete("/api/v2/authn/basic/logout").json() == {
        "message": "Logout successfully"
    }
    assert anonymous.acting_as(first).get("/api/v2/users/alice").status == 401
    assert anonymous.acting_as(second).get("/api/v2/users/alice").status == 200


def test_tokens_of_a_user_are_listed_created_and_revoked(alice: Any) -> None:
    assert alice.get("/api/v2/tokens").json() == {"tokens": [alice.token]}
    created = alice.post("/api/v2/tokens/application", {}).json()
    assert created["application"] is True
    assert "exp" not in jwt.decode(created["token"], options={"verify_signature": False})
    assert set(alice.get("/api/v1/token/").json()["tokens"]) == {alice.token, created["token"]}
    for _ in range(2):
        assert alice.delete("/api/v2/tokens/" + created["token"]).status == 200
    assert alice.get("/api/v2/tokens").json() == {"tokens": [alice.token]}


def test_an_application_token_needs_no_body_to_be_created(alice: Any) -> None:
    assert alice.post("/api/v2/tokens/application").status == 200


def test_tokens_of_others_and_garbage_cannot_be_revoked(alice: Any, bob: Any) -> None:
    reply = alice.delete("/api/v2/tokens/" + bob.token)
    assert (reply.status, reply.code) == (403, "ForbiddenUserError")
    reply = alice.delete("/api/v2/tokens/garbage")
    assert (reply.status, reply.code) == (400, "InvalidParametersError")
    assert bob.get("/api/v2/tokens/check").status == 200


def test_check_tells_the_claims_and_the_live_admin_flag(alice: Any, admin: Any) -> None:
    assert alice.get("/api/v2/tokens/check").json()["admin"] is False
    admin.put("/api/v2/users/alice/admin", {"admin": True})
    found = alice.get("/api/v2/tokens/check").json()
    assert found["admin"] is True and found["username"] == "alice" and found["jti"]


def test_basic_scheme_takes_application_tokens_of_that_user_only(anonymous: Any, alice: Any) -> None:
    application = alice.post("/api/v2/tokens/application", {}).json()["token"]

    def status(user: str, token: str) -> int:
        text = base64.b64encode(f"{user}:{token}".encode()).decode()
        return anonymous.get("/api/v2/users/alice", headers={"authorization": f"Basic {text}"}).status

    assert status("alice", application) == 200
    assert status("bob", application) == 401
    assert status("alice", alice.token) == 401


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic !!!", "Basic YQ==", "Digest x", "x" * 5000, "Basic /w=="]
)
def test_odd_authorization_headers_are_401(anonymous: Any, header: str) -> None:
    reply = anonymous.get("/api/v2/users", headers={"authorization": header})
    assert (reply.status, reply.code) == (401, "UnauthorizedUserError")


def test_the_scheme_is_case_insensitive(alice: Any) -> None:
    assert alice.get("/api/v2/users", headers={"authorization": f"bEARER {alice.token}"}).status == 200


def _forge(token: str, key: str | None, algorithm: str, **changes: Any) -> str:
    claims = {**jwt.decode(token, options={"verify_signature": False}), **changes}
    return jwt.encode(claims, key, algorithm=algorithm)


def test_forged_tokens_are_refused(alice: Any, anonymous: Any) -> None:
    head, payload, signature = alice.token.split(".")
    other = _forge(alice.token, "x" * 32, "HS256", username="admin").split(".")[1]
    forged = [
        _forge(alice.token, "x" * 32, "HS256"),
        _forge(alice.token, "x" * 32, "HS256", username="admin"),
        _forge(alice.token, None, "none"),
        f"{head}.{payload}.",
        f"{head}.{other}.{signature}",
        f"{head}.{payload}",
        "a.b.c",
    ]
    for token in forged:
        reply = anonymous.acting_as(token).get("/api/v2/users")
        assert (reply.status, reply.json()["message"]) == (401, "Your token is invalid."), token


def test_an_expired_token_is_refused_and_forgotten(alice: Any, anonymous: Any, clock: Any, db: Any) -> None:
    clock.now += 7 * 24 * 3600 - 1
    assert alice.get("/api/v2/users").status == 200
    clock.now += 1
    assert alice.get("/api/v2/users").json()["message"] == "Your token is invalid."
    anonymous.post(LOGIN, {"username": "alice", "password": "alice-secret"})
    assert db.read.execute("SELECT count(*) FROM tokens WHERE user = 'alice'").fetchone() == (1,)


def test_application_tokens_do_not_expire(robot: Any, clock: Any) -> None:
    clock.now += 10 * 365 * 24 * 3600
    assert robot.get("/api/v2/users").status == 200


def test_tokens_outlive_a_restart(alice: Any, db: Any, clock: Any) -> None:
    again = Accounts(db, clock=clock)
    assert again.authenticate(f"Bearer {alice.token}").name == "alice"
    assert again.tokens.texts_of("alice") == [alice.token]


def test_only_ids_of_tokens_are_stored(alice: Any, db: Any) -> None:
    dump = "\n".join(str(row) for row in db.read.execute("SELECT * FROM tokens"))
    assert "alice" in dump and alice.token not in dump


def test_a_job_token_lives_as_long_as_its_job(anonymous: Any, accounts: Accounts) -> None:
    active = {("alice", "train")}
    accounts.tokens.job_is_active = lambda user, job: (user, job) in active
    client = anonymous.acting_as(accounts.issue_job_token("alice", "train"))
    found = client.get("/api/v2/tokens/check").json()
    assert found["jobSpecific"] is True and bytes.fromhex(found["encodedFrameworkName"]) == b"train"
    assert (
        client.get("/api/v2/tokens").json()["message"] == "Applications are not allowed to do this operation."
    )
    active.clear()
    assert client.get("/api/v2/tokens/check").status == 401


def test_the_local_user_keeps_one_token(db: Any, clock: Any) -> None:
    accounts = Accounts(db, clock=clock)
    token = accounts.ensure_local_user("me")
    assert accounts.ensure_local_user("me") == token == Accounts(db, clock=clock).ensure_local_user("me")
    caller = accounts.authenticate(f"Bearer {token}")
    assert caller.admin and not caller.application


@pytest.mark.parametrize(
    ("given", "expected"), [("me", "me"), ("Jean Luc", "Jean_Luc"), ("..", "user"), ("a/../b", "a_.._b")]
)
def test_names_of_the_operating_system_become_names_of_accounts(given: str, expected: str) -> None:
    assert account_name(given) == expected


def test_first_start_gives_a_random_admin_password_once(db: Any, clock: Any) -> None:
    accounts = Accounts(db, clock=clock)
    password = accounts.first_start()
    assert password and len(password) >= 12
    assert accounts.first_start() is None
    assert Accounts(db, clock=clock).first_start() is None
    assert password not in str(db.read.execute("SELECT * FROM users").fetchall())


def test_authn_info(anonymous: Any) -> None:
    for version in ("v1", "v2"):
        assert anonymous.get(f"/api/{version}/authn/info").json() == {
            "authn_type": "basic",
            "loginURI": "/api/v1/authn/basic/login",
            "loginURIMethod": "post",
        }
