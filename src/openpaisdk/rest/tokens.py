"""Logging in and out, and the tokens that stand for it."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError
from openpaisdk.rest.calls import Calls, _claims, lacks_api
from openpaisdk.transport import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Tokens(Calls):
    """Login, logout and tokens."""

    def login(
        self, user: str | None = None, passwd: str | None = None, *, expiration: int | None = None
    ) -> dict[str, Any]:
        """Log in with a password and use the new token from now on: `user`, `token`, `admin`."""
        if user is not None:
            self.config.user = user
        if passwd is not None:
            self.config.passwd = passwd
        found = self._login_call(self.user, self.config.passwd or "", expiration)
        self._token = found["token"]
        return found

    def logout(self) -> None:
        """Give the token back; it is refused from now on."""
        self.request("DELETE", "/api/v2/authn/basic/logout", safe=True)
        self._token = None
        if self._remember:
            from openpaisdk.config import remember_token

            remember_token(self.config, None)

    def tokens(self) -> list[str]:
        """My tokens."""
        found = self._json("GET", "/api/v2/tokens").get("tokens")
        return list(found) if isinstance(found, list) else []

    def create_application_token(self) -> str:
        """A token for automation, which does not expire."""
        return str(self._json("POST", "/api/v2/tokens/application", send={})["token"])

    def revoke_token(self, token: str) -> None:
        """Make a token invalid; one that already is stays so."""
        self.request("DELETE", f"/api/v2/tokens/{quote(token)}", safe=True)

    def check_token(self) -> dict[str, Any]:
        """What the token in use says: `username`, `application`, `admin`; LoginError where it is refused."""
        try:
            return self._object("GET", "/api/v2/tokens/check")
        except NotFoundError as error:
            if not lacks_api(error):
                raise
        # Servers before 1.6 cannot tell; any call that needs a token shows whether it is still good.
        mine = self._json("GET", f"/api/v2/users/{quote(self.user)}")
        return {**_claims(self._token or ""), "username": self.user, "admin": bool(mine.get("admin"))}
