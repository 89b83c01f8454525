"""A user's own tokens."""

from __future__ import annotations

from typing import Any

import msgspec

from openpaisdk.errors import AccessError
from openpaisdk.server.http import Call, Message, endpoint

_BASES = ("/api/v2/tokens", "/api/v2/token", "/api/v1/token", "/api/v1/tokens")


def _paths(tail: str = "") -> tuple[str, ...]:
    return tuple(base + tail for base in _BASES)


class TokenList(msgspec.Struct):
    """All valid tokens of the caller."""

    tokens: list[str]


class NewToken(msgspec.Struct):
    """A token for programs; it does not expire."""

    token: str
    application: bool


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty body."""


@endpoint("GET", _paths(), guard="user", returns=TokenList)
async def list_tokens(call: Call) -> TokenList:
    """All valid tokens of the caller."""
    return TokenList(call.services.accounts.tokens.texts_of(call.caller.name))


@endpoint("POST", _paths("/application"), guard="user", body=Nothing, returns=NewToken)
async def create_application_token(call: Call) -> NewToken:
    """Create a token for programs; it does not expire."""
    return NewToken(await call.services.accounts.tokens.issue(call.caller.name, "application"), True)


@endpoint("DELETE", _paths("/{token}"), guard="user", returns=Message, errors=(400,))
async def revoke_token(call: Call) -> Message:
    """Revoke one of the caller's tokens; one that is revoked already is fine."""
    tokens = call.services.accounts.tokens
    if tokens.owner(call.path["token"]) != call.caller.name:
        raise AccessError("This token belongs to another user.")
    await tokens.revoke(call.path["token"])
    return Message("Revoke token successfully")


@endpoint("GET", _paths("/check"), returns=dict[str, Any])
async def check_token(call: Call) -> dict[str, Any]:
    """The claims of the token this request came with, and whether its user is an admin."""
    return {**call.caller.claims, "admin": call.caller.admin}


ENDPOINTS = [list_tokens, create_application_token, revoke_token, check_token]
