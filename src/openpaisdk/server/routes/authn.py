"""Logging in and out with a password."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from openpaisdk.server.http import Call, Message, endpoint
from openpaisdk.server.schemas import NewPassword, UserName


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """Name and password; `expiration` is accepted and ignored, sessions last seven days."""

    username: UserName
    password: NewPassword
    expiration: Annotated[int, Meta(ge=60, le=604800)] = 86400


class Session(msgspec.Struct):
    """A fresh token and whose it is."""

    user: str
    token: str
    admin: bool
    hasGitHubPAT: Any = UNSET


class LoginMethod(msgspec.Struct):
    """How and where to log in."""

    authn_type: str
    loginURI: str
    loginURIMethod: str


@endpoint("GET", ("/api/v2/authn/info", "/api/v1/authn/info"), guard="none", returns=LoginMethod)
async def login_method(call: Call) -> LoginMethod:
    """How and where to log in."""
    return LoginMethod(authn_type="basic", loginURI="/api/v1/authn/basic/login", loginURIMethod="post")


@endpoint(
    "POST",
    (
        "/api/v2/authn/basic/login",
        "/api/v1/authn/basic/login",
        "/api/v2/tokens",
        "/api/v2/token",
        "/api/v1/token",
        "/api/v1/tokens",
    ),
    guard="none",
    body=Login,
    returns=Session,
)
async def login(call: Call) -> Session:
    """Log in with a password, sent as a form or as JSON."""
    accounts = call.services.accounts
    name = call.body.username
    token = await accounts.login(name, call.body.password)
    return Session(
        user=name,
        token=token,
        admin=accounts.is_admin(name),
        hasGitHubPAT=accounts.users[name].extension.get("githubPAT", UNSET),
    )


@endpoint(
    "DELETE", ("/api/v2/authn/basic/logout", "/api/v1/authn/basic/logout"), guard="user", returns=Message
)
async def logout(call: Call) -> Message:
    """Revoke the token this request came with."""
    await call.services.accounts.tokens.revoke(call.caller.token)
    return Message("Logout successfully")


ENDPOINTS = [login_method, login, logout]
