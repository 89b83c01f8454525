"""Who is calling: password hashes, signed tokens and the guards in front of endpoints."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Any, Literal

import jwt
import msgspec

from openpaisdk.errors import AccessError, LoginError

Guard = Literal["none", "check", "user", "check-admin", "admin"]

INVALID_TOKEN = "Your token is invalid."  # noqa: S105
NON_ADMIN = "Non-admin is not allow to do this operation."
APPLICATION = "Applications are not allowed to do this operation."

_COST = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


class Caller(msgspec.Struct, frozen=True):
    """The account behind a request; `admin` is looked up now, it is not what the token once said."""

    name: str
    admin: bool = False
    application: bool = False
    token: str = ""
    claims: dict[str, Any] = {}


ANONYMOUS = Caller("")


def enforce(guard: Guard, caller: Caller) -> None:
    """Refuse a known caller what the guard of an endpoint does not let through."""
    if caller.application and guard in ("user", "admin"):
        raise AccessError(APPLICATION)
    if not caller.admin and guard in ("admin", "check-admin"):
        raise AccessError(NON_ADMIN)


def require_self_or_admin(caller: Caller, user: str) -> None:
    """Refuse a plain user what belongs to somebody else."""
    if caller.name != user and not caller.admin:
        raise AccessError(f"User {caller.name} may not change user {user}.")


def hash_password(password: str) -> str:
    """Salt and hash a password; it blocks for tens of milliseconds, so call it in a thread."""
    salt = secrets.token_bytes(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, **_COST)
    return f"scrypt:{salt.hex()}:{digest.hex()}"


def verify_password(password: str, stored: str | None) -> bool:
    """Compare in constant time; an unknown user (None) costs the same as a known one."""
    salt, digest = bytes(16), b""
    if stored and stored.startswith("scrypt:"):
        _, salt_text, digest_text = stored.split(":")
        salt, digest = bytes.fromhex(salt_text), bytes.fromhex(digest_text)
    found = hashlib.scrypt(password.encode(), salt=salt, **_COST)
    return hmac.compare_digest(found, digest)


def encode_token(claims: dict[str, Any], key: str) -> str:
    """Sign claims; the same claims give the same text, so a token can be shown without being stored."""
    return jwt.encode(claims, key, algorithm="HS256")


def decode_token(token: str, key: str, *, expired_ok: bool = False) -> dict[str, Any]:
    """The claims of a token that we signed; LoginError for any other."""
    options: Any = {"verify_exp": not expired_ok, "verify_iat": False}
    try:
        claims: dict[str, Any] = jwt.decode(token, key, algorithms=["HS256"], options=options)
    except (jwt.PyJWTError, ValueError, UnicodeError, RecursionError) as error:
        raise LoginError(INVALID_TOKEN) from error
    return claims


def credentials(header: str | None) -> tuple[str, str | None]:
    """The token of an Authorization header, and the user name it came with under the Basic scheme."""
    if not header:
        raise LoginError("Guest is not allowed to do this operation.", hint="send an Authorization header")
    scheme, _, value = header.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value, None
    if scheme.lower() == "basic":
        try:
            user, _, token = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError as error:
            raise LoginError(INVALID_TOKEN) from error
        return token, user
    raise LoginError(INVALID_TOKEN, hint="use the Bearer or the Basic scheme")
