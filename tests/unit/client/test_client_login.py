"""Logging in when needed, again when refused, and never more often than that."""

from __future__ import annotations

import base64
import json

import pytest
from client_doubles import Answer

from openpaisdk import config
from openpaisdk.core import Cluster
from openpaisdk.errors import LoginError


def jwt(**claims):
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{part}.c2ln"


class Accounts:
    """Gives numbered tokens for the right password and accepts those it has not revoked."""

    def __init__(self, answers):
        self.given = 0
        self.valid = set()
        answers.table["POST /authn/basic/login"] = self.login
        answers.table["GET /jobs/me~j"] = self.read

    def login(self, request):
        if request.data["username"] != "me":
            return Answer(400, {"code": "NoUserError", "message": "User x is not found."})
        if request.data["password"] != "secret":
            return Answer(400, {"code": "IncorrectPasswordError", "message": "Password is incorrect."})
        self.given += 1
        self.valid.add(f"token{self.given}")
        return {"user": "me", "token": f"token{self.given}", "admin": False}

    def read(self, request):
        if request.headers.get("authorization", "").removeprefix("Bearer ") in self.valid:
            return {"name": "j"}
        return Answer(401, {"code": "UnauthorizedUserError", "message": "Your token is invalid."})


@pytest.fixture
def accounts(answers):
    return Accounts(answers)


def test_logs_in_once_and_only_when_needed(make_cluster, answers, accounts):
    cluster = make_cluster(passwd="secret")
    assert answers.calls == []
    cluster.job("j")
    cluster.job("j")
    assert answers.paths == ["POST /authn/basic/login", "GET /jobs/me~j", "GET /jobs/me~j"]


def test_renews_on_401_once(make_cluster, answers, accounts):
    cluster = make_cluster(passwd="secret")
    cluster.job("j")
    accounts.valid.clear()
    cluster.job("j")
    assert accounts.given == 2
    accounts.read = None
    answers.table["GET /jobs/me~j"] = Answer(401, {"code": "UnauthorizedUserError", "message": "invalid"})
    answers.calls.clear()
    with pytest.raises(LoginError):
        cluster.job("j")
    assert answers.paths == ["GET /jobs/me~j", "POST /authn/basic/login", "GET /jobs/me~j"]


def test_a_token_is_used_before_the_password(make_cluster, answers, accounts):
    accounts.valid.add("mine")
    cluster = make_cluster(passwd="secret", token="mine")
    cluster.job("j")
    assert accounts.given == 0
    accounts.valid.clear()
    cluster.job("j")
    assert accounts.given == 1


def test_an_expired_token_without_password(make_cluster, answers, accounts):
    cluster = make_cluster(token="old")
    with pytest.raises(LoginError, match="token is invalid") as caught:
        cluster.job("j")
    assert "opai cluster add" in caught.value.hint
    assert len(answers.calls) == 1


@pytest.mark.parametrize(
    ("user", "passwd", "said"),
    [
        ("me", "wrong", r"refuses the password of 'me': Password is incorrect"),
        ("bob", "x", "knows no user 'bob'"),
    ],
)
def test_wrong_user_or_password(make_cluster, answers, accounts, user, passwd, said):
    with pytest.raises(LoginError, match=said) as caught:
        make_cluster(user=user, passwd=passwd).job("me~j")
    assert passwd not in str(caught.value) or passwd == "x"
    assert caught.value.exit_code == 5


def test_a_password_without_user(make_cluster):
    with pytest.raises(LoginError, match="no user name"):
        make_cluster(user=None, passwd="secret").job("me~j")


@pytest.mark.parametrize("answer", [{"message": "use OIDC"}, Answer(404, {"code": "NoApiError"})])
def test_a_cluster_that_gives_no_token_for_a_password(make_cluster, answers, answer):
    answers.table["POST /authn/basic/login"] = answer
    with pytest.raises(LoginError) as caught:
        make_cluster(passwd="secret").job("j")
    assert "--token" in caught.value.hint


def test_who_i_am_from_the_token(make_cluster):
    assert make_cluster(user=None, token=jwt(username="ann")).user == "ann"
    for token in ("opaque", jwt(x=1), "a.%%%.c", None):
        with pytest.raises(LoginError, match="not known"):
            make_cluster(user=None, token=token).user  # noqa: B018


def test_commands_share_a_login(own_home, answers, accounts):
    entry = config.ClusterConfig("x", "http://x", user="me", passwd="secret")
    Cluster(entry, transport=answers, remember=True).job("j")
    Cluster(entry, transport=answers, remember=True).job("j")
    assert accounts.given == 1
    accounts.valid.clear()
    Cluster(entry, transport=answers, remember=True).job("j")
    assert config.cached_token(entry) == "token2"


def test_explicit_values_write_nothing(own_home, make_cluster, accounts):
    make_cluster(passwd="secret").job("j")
    assert not own_home.exists()


def test_logout_forgets(own_home, answers, accounts):
    entry = config.ClusterConfig("x", "http://x", user="me", passwd="secret")
    answers.table["DELETE /authn/basic/logout"] = {"message": "Logout successfully"}
    cluster = Cluster(entry, transport=answers, remember=True)
    cluster.logout()
    assert config.cached_token(entry) is None
    cluster.job("j")
    assert accounts.given == 2


def test_login_by_hand(make_cluster, answers, accounts):
    cluster = make_cluster(user=None, token=None)
    assert cluster.login("me", "secret")["token"] == "token1"
    assert cluster.job("j") == {"name": "j"}


def test_check_token_before_1_6(make_cluster, answers):
    answers.table["GET /users/ann"] = {"username": "ann", "admin": True}
    cluster = make_cluster(user=None, token=jwt(username="ann", application=True))
    assert cluster.check_token() == {"username": "ann", "application": True, "admin": True}
