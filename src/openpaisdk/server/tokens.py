"""Issued tokens: who may use which, until when, and what is revoked."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from openpaisdk.errors import LoginError, UsageError
from openpaisdk.server.auth import INVALID_TOKEN, decode_token, encode_token

if TYPE_CHECKING:
    from openpaisdk.server.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS server_keys (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, kind TEXT NOT NULL, issued INTEGER NOT NULL, expires INTEGER
) WITHOUT ROWID;
"""

LOGIN_SECONDS = 7 * 24 * 3600
_CHECKED_LIMIT = 4096


class Token(msgspec.Struct, frozen=True):
    """One entry of the allow-list; `kind` is login, application, local or job."""

    id: str
    user: str
    kind: str
    issued: int
    expires: int | None = None
    job: str = ""

    @property
    def application(self) -> bool:
        return self.kind in ("application", "job")

    def claims(self) -> dict[str, Any]:
        """What is signed, in the order that makes the text come out the same every time."""
        found: dict[str, Any] = {
            "username": self.user,
            "application": self.application,
            "jobSpecific": self.kind == "job",
            "encodedFrameworkName": self.job.encode().hex(),
            "jti": self.id,
            "iat": self.issued,
        }
        if self.expires is not None:
            found["exp"] = self.expires
        return found


class Tokens:
    """The allow-list. Only ids are stored: the text of a token is signed anew when its owner asks for it.

    A token for a job is not listed; it holds while `job_is_active(user, job)` says so.
    """

    def __init__(self, db: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._db = db
        self._clock = clock
        self._key = self._load_key()
        self._by_id: dict[str, Token] = {}
        self._by_user: dict[str, dict[str, Token]] = {}
        self._checked: dict[str, Token] = {}
        self.job_is_active: Callable[[str, str], bool] = lambda user, job: True
        now = int(clock())
        db.write_now(lambda conn: conn.execute("DELETE FROM tokens WHERE expires <= ?", (now,)))
        for row in db.read.execute("SELECT id, user, kind, issued, expires FROM tokens ORDER BY issued, id"):
            self._remember(Token(*row))

    def _load_key(self) -> str:
        def load(conn: sqlite3.Connection) -> str:
            conn.execute(
                "INSERT INTO server_keys VALUES ('token', ?) ON CONFLICT DO NOTHING", (secrets.token_hex(32),)
            )
            found: str = conn.execute("SELECT value FROM server_keys WHERE name = 'token'").fetchone()[0]
            return found

        return self._db.write_now(load)

    def check(self, text: str) -> Token:
        """The entry of a presented token; LoginError when forged, expired, revoked or of a finished job."""
        token = self._checked.get(text)
        if token is None:
            token = self._decode(text)
            if len(self._checked) >= _CHECKED_LIMIT:
                self._checked.clear()
            self._checked[text] = token
        if token.kind == "job":
            valid = self.job_is_active(token.user, token.job)
        else:
            valid = token.id in self._by_id and (token.expires is None or token.expires > self._clock())
        if not valid:
            raise LoginError(INVALID_TOKEN)
        return token

    def _decode(self, text: str) -> Token:
        claims = decode_token(text, self._key, expired_ok=True)
        try:
            if claims["jobSpecific"]:
                job = bytes.fromhex(claims["encodedFrameworkName"]).decode()
                return Token(claims["jti"], claims["username"], "job", claims["iat"], job=job)
            return self._by_id[claims["jti"]]
        except (KeyError, TypeError, ValueError) as error:
            raise LoginError(INVALID_TOKEN) from error

    def text(self, token: Token) -> str:
        """The token as its owner presents it."""
        return encode_token(token.claims(), self._key)

    def job_token(self, user: str, job: str) -> str:
        """A token for the tasks of a job; costs no write."""
        return self.text(Token(secrets.token_hex(16), user, "job", int(self._clock()), job=job))

    async def issue(self, user: str, kind: str) -> str:
        """A new login or application token; expired ones of that user are dropped on the way."""
        now = int(self._clock())
        expires = now + LOGIN_SECONDS if kind == "login" else None
        token = Token(secrets.token_hex(16), user, kind, now, expires)
        gone = [old for old in self._of(user) if old.expires is not None and old.expires <= now]

        def change(conn: sqlite3.Connection) -> None:
            conn.executemany("DELETE FROM tokens WHERE id = ?", [(old.id,) for old in gone])
            _insert(conn, token)

        await self._db.write(change)
        self._forget(gone)
        self._remember(token)
        return self.text(token)

    def local_token(self, user: str) -> str:
        """The lasting token of the machine's own user, the same one at every start."""
        for token in self._of(user):
            if token.kind == "local":
                return self.text(token)
        token = Token(secrets.token_hex(16), user, "local", int(self._clock()))
        self._db.write_now(lambda conn: _insert(conn, token))
        self._remember(token)
        return self.text(token)

    def texts_of(self, user: str) -> list[str]:
        """Every valid token of a user."""
        now = self._clock()
        return [self.text(token) for token in self._of(user) if token.expires is None or token.expires > now]

    def owner(self, text: str) -> str:
        """Whose token a text is, be it revoked or expired; UsageError when we never signed it."""
        try:
            return str(decode_token(text, self._key, expired_ok=True)["username"])
        except (LoginError, KeyError) as error:
            raise UsageError("This is not a token of this cluster.") from error

    async def revoke(self, text: str) -> None:
        """Take one token off the list; one that is off already is fine."""
        claims = decode_token(text, self._key, expired_ok=True)
        await self._revoke([token for token in [self._by_id.get(str(claims.get("jti")))] if token])

    async def revoke_logins(self, user: str) -> None:
        """What a new password does: sessions end, application tokens and the machine's own token stay."""
        await self._revoke([token for token in self._of(user) if token.kind == "login"])

    async def revoke_all(self, user: str) -> None:
        """What removing an account does."""
        await self._revoke(self._of(user))

    async def _revoke(self, gone: list[Token]) -> None:
        ids = [(token.id,) for token in gone]
        if ids:
            await self._db.write(
                lambda conn: conn.executemany("DELETE FROM tokens WHERE id = ?", ids) and None
            )
        self._forget(gone)

    def _of(self, user: str) -> list[Token]:
        return list(self._by_user.get(user, {}).values())

    def _remember(self, token: Token) -> None:
        self._by_id[token.id] = token
        self._by_user.setdefault(token.user, {})[token.id] = token

    def _forget(self, gone: list[Token]) -> None:
        for token in gone:
            self._by_id.pop(token.id, None)
            self._by_user.get(token.user, {}).pop(token.id, None)


def _insert(conn: sqlite3.Connection, token: Token) -> None:
    conn.execute(
        "INSERT INTO tokens (id, user, kind, issued, expires) VALUES (?, ?, ?, ?, ?)",
        (token.id, token.user, token.kind, token.issued, token.expires),
    )
