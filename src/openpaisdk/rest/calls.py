"""What every operation needs: the address, the token, retries, and errors instead of error answers."""

from __future__ import annotations

import json
import time

from openpaisdk.errors import LoginError, NotFoundError, OpenPAIError
from openpaisdk.transport import NetworkError, Response, Transport, call_with_retry, quote, show_origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from openpaisdk.config import ClusterConfig
    from openpaisdk.transport import Double

    Body = bytes | Iterable[bytes] | None

_KNOWN_ENDINGS = ("/api/v1", "/api/v2", "/api")
_GATEWAY = "/rest-server"


class Calls:
    """Sends calls to one cluster as one user. The resources of `openpaisdk.rest` build on it."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        transport: Transport | Double | None = None,
        timeout: float = 30.0,
        remember: bool = False,
        sleep: Callable[[float], Any] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        notice: Callable[[str], Any] | None = None,
        on_local_start: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.config = config
        self.timeout = timeout
        self.extensions: frozenset[str] = frozenset()
        self._remember = remember
        self._sleep = sleep
        self._clock = clock
        self._notice = notice
        self._on_local_start = on_local_start
        self._given = transport
        self._token: str | None = None
        self._user: str | None = None
        self._is_local = config.is_local
        if config.is_local:
            self._use_local(restart_if_dead=False)
        else:
            self._connect(config)

    def _connect(self, config: ClusterConfig) -> None:
        self.config = config
        self._token = config.token
        given = self._given
        if isinstance(given, Transport):
            self.transport = given
        else:
            self.transport = Transport(
                config.pai_uri, verify=config.verify, timeout=self.timeout, double=given
            )
        path = self.transport.base_path
        ending = next((end for end in _KNOWN_ENDINGS if path.endswith(end)), "")
        path = path[: len(path) - len(ending)]
        if path.endswith(_GATEWAY):
            path, prefixes = path[: -len(_GATEWAY)], [_GATEWAY]
        else:
            prefixes = [""] if ending else [_GATEWAY, ""]
        self.transport.base_path = ""
        self.portal_uri = show_origin(self.transport.origin) + path
        self._portal_path = path
        self._prefixes = prefixes

    def _use_local(self, *, restart_if_dead: bool) -> None:
        from openpaisdk import local

        config = local.ensure(restart_if_dead=restart_if_dead)
        self._connect(config)
        started = config.extra.get("started")
        if started is not None and self._on_local_start is not None:
            self._on_local_start(started)

    @property
    def user(self) -> str:
        """Who I am on this cluster."""
        if self.config.user:
            return self.config.user
        if self._user is None:
            self._user = _claims(self._authorisation() or "").get("username")
        if not self._user:
            raise LoginError(
                f"the user of {self.portal_uri} is not known",
                hint="give a user name and a password or token: `opai cluster add -a "
                + (self.config.alias if "://" not in self.config.alias else "ALIAS")
                + "`",
            )
        return self._user

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body = None,
        timeout: float | None = None,
        stream: bool = False,
        authorised: bool = True,
        safe: bool | None = None,
    ) -> Response:
        """Send one call with my token and return the answer; an error answer becomes an error.

        Paths that start with `/api` go to the REST server, others to the portal; a whole URL is used as is,
        without my token. `safe` calls (unless told: those that only read) are repeated when they fail for a
        passing reason.
        """
        repeatable = body is None or isinstance(body, bytes)
        if safe is None:
            safe = method in ("GET", "HEAD")
        foreign = "://" in path

        def once() -> Response:
            try:
                response = self._send(
                    method,
                    path,
                    query,
                    dict(headers or {}),
                    body,
                    timeout,
                    stream,
                    authorised and not foreign,
                )
            except NetworkError as error:
                self._with_names(error)
                raise
            if response.status >= 300:
                from openpaisdk.rest.failures import failure

                raise self._with_names(failure(response, method))
            return response

        if not (safe and repeatable):
            return once()
        return call_with_retry(once, sleep=self._sleep, notice=self._notice)

    def _with_names(self, error: OpenPAIError) -> OpenPAIError:
        """Says whose token is refused where the server only says that one is, and which alias is meant."""
        if isinstance(error, LoginError) and error.http_status == 401 and self._token:
            owner = f" of {self.config.user!r}" if self.config.user else ""
            error.message = f"{self.portal_uri} refuses the token{owner}: {error.message}"
            error.args = (error.message,)
        elif isinstance(error, LoginError) and error.http_status == 401:
            error.hint = f"log in to {self.portal_uri} with `opai cluster add -a ALIAS --user NAME`"
        if error.hint and "ALIAS" in error.hint:
            from openpaisdk.config.clusters import ENVIRONMENT

            if self.config.alias == ENVIRONMENT:
                tls = "set OPAI_VERIFY to the path of its CA file, or to false to trust it unchecked"
                login = "set OPAI_USER and OPAI_PASSWD, or OPAI_TOKEN, to what is right"
                error.hint = tls if getattr(error, "reason", "") == "tls" else login
            elif "://" not in self.config.alias:
                error.hint = error.hint.replace("ALIAS", self.config.alias)
        return error

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        headers: dict[str, str],
        body: Body,
        timeout: float | None,
        stream: bool,
        authorised: bool,
    ) -> Response:
        renewed = revived = False
        repeatable = body is None or isinstance(body, bytes)
        while True:
            token = self._authorisation() if authorised else None
            if token:
                headers["authorization"] = f"Bearer {token}"
            api = path.startswith("/api")
            target = path if "://" in path else self._portal_path + (self._prefixes[0] if api else "") + path
            try:
                response = self.transport.request(
                    method, target, query=query, headers=headers, body=body, timeout=timeout, stream=stream
                )
            except NetworkError as error:
                if not self._is_local or revived or error.reason != "refused":
                    raise
                revived = True
                self._use_local(restart_if_dead=True)
                continue
            if "://" in path:
                return response
            found = response.headers.get("openpai-extensions")
            if found is not None:
                self.extensions = frozenset(item.strip() for item in found.split(",") if item.strip())
            elif self._is_local and not revived and repeatable:
                response.close()
                revived = True
                self._use_local(restart_if_dead=True)
                continue
            if not repeatable:
                return response
            if api and len(self._prefixes) > 1 and self._other_prefix(response):
                continue
            if response.status == 401 and token and not renewed and self._renew(token):
                renewed = True
                continue
            return response

    def _other_prefix(self, response: Response) -> bool:
        """Whether the REST server turns out to be at the other prefix; the first clear answer settles it."""
        kind = response.headers.get("content-type", "")
        if response.status == 429 or response.status >= 500:
            return False
        absent = response.status == 404 and ("json" not in kind or b"NoApiError" in response.body)
        wrong = absent or "html" in kind
        if not wrong or "openpai-extensions" in response.headers:
            del self._prefixes[1:]
            return False
        try:
            probe = self.transport.request("GET", f"{self._portal_path}{self._prefixes[1]}/api/v2/info")
            known = probe.status == 200 and "launcherType" in probe.json()
        except (OpenPAIError, ValueError, TypeError):
            return False
        del self._prefixes[0 if known else 1]
        return known

    def _authorisation(self) -> str | None:
        if self._token is None and self.config.passwd:
            if self._remember:
                from openpaisdk.config import cached_token

                self._token = cached_token(self.config)
            if self._token is None:
                self._log_in()
        return self._token

    def _log_in(self) -> None:
        """Get a new token with the password."""
        if not self.config.user:
            raise LoginError(
                f"a password but no user name is given for {self.portal_uri}",
                hint="add the key user to the cluster (`opai cluster add`)",
            )
        try:
            found = self._login_call(self.config.user, self.config.passwd or "")
        except OpenPAIError as error:
            if error.code == "NoUserError":
                said, hint = f"{self.portal_uri} knows no user {self.config.user!r}", "check the name"
            elif error.code == "IncorrectPasswordError":
                said = f"{self.portal_uri} refuses the password of {self.config.user!r}: {error.message}"
                hint = "give the right one with `opai cluster add -a ALIAS`"
            else:
                raise
            raise self._with_names(LoginError(said, code=error.code, hint=hint, http_status=400)) from error
        self._token = str(found["token"])
        if self._remember:
            from openpaisdk.config import remember_token

            remember_token(self.config, self._token)

    def _login_call(self, user: str, passwd: str, expiration: int | None = None) -> dict[str, Any]:
        asked: dict[str, Any] = {"username": user, "password": passwd}
        if expiration is not None:
            asked["expiration"] = expiration
        found: Any = None
        try:
            found = self._json("POST", "/api/v2/authn/basic/login", send=asked, authorised=False, safe=True)
        except NotFoundError as error:
            if not lacks_api(error):
                raise
        if not isinstance(found, dict) or not isinstance(found.get("token"), str):
            raise LoginError(
                f"{self.portal_uri} gives no token for a password",
                hint="log in on its portal, copy a token there and give it with `opai cluster add --token`",
            )
        return found

    def _renew(self, refused: str) -> bool:
        """Get another token after `refused` was refused; whether there is one."""
        if self._is_local:
            self._use_local(restart_if_dead=False)
            return self._token != refused
        if self._token != refused:
            return True
        if not self.config.passwd:
            return False
        self._log_in()
        return True

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        send: Any = None,
        headers: Mapping[str, str] | None = None,
        authorised: bool = True,
        safe: bool | None = None,
        timeout: float | None = None,
        shape: type | tuple[type, ...] | None = None,
    ) -> Any:
        """Call and return the JSON of the answer, of the `shape` asked for; `send` goes out as JSON."""
        body = None
        given = dict(headers or {})
        if send is not None:
            body = json.dumps(send).encode()
            given["content-type"] = "application/json"
        response = self.request(
            method,
            path,
            query=query,
            headers=given,
            body=body,
            authorised=authorised,
            safe=safe,
            timeout=timeout,
        )
        from_server: Any = None
        try:
            from_server = response.json()
        except ValueError:
            wanted = "JSON"
        else:
            if shape is None or isinstance(from_server, shape):
                return from_server
            wanted = "what OpenPAI answers"
        from openpaisdk.rest.failures import not_json

        raise not_json(response, wanted)

    def _object(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Like `_json`, where the answer has to be one object."""
        return dict(self._json(method, path, shape=dict, **options))

    def _array(self, method: str, path: str, **options: Any) -> list[Any]:
        """Like `_json`, where the answer has to be a list."""
        return list(self._json(method, path, shape=list, **options))

    def job_path(self, name: str, user: str | None = None) -> str:
        """The path of a job, whose name may be `user~name` or mean one of my own."""
        owner, tilde, short = name.partition("~")
        if not tilde:
            owner, short = user or self.user, name
        if not owner or not short:
            raise NotFoundError(f"{name!r} is not the name of a job", hint="write NAME or USER~NAME")
        return f"/api/v2/jobs/{quote(owner)}~{quote(short)}"


def lacks_api(error: OpenPAIError) -> bool:
    """Whether the server is too old (or too different) to know the call."""
    return error.code == "NoApiError"


def _claims(token: str) -> dict[str, Any]:
    """What a token says about itself; nothing where it is not a JWT."""
    from binascii import a2b_base64

    part = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        found = json.loads(a2b_base64(part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
