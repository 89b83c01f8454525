"""Error answers of a server, rebuilt as the errors of this package; loaded only when one arrives."""

from __future__ import annotations

import json

from openpaisdk import errors
from openpaisdk.transport.retry import seconds_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.transport import Response

_BY_CODE: dict[str, type[errors.OpenPAIError]] = {
    "BadConfigurationError": errors.ConfigError,
    "ConflictJobError": errors.ConflictError,
    "ConflictUserError": errors.ConflictError,
    "ConflictVcError": errors.ConflictError,
    "ForbiddenUserError": errors.AccessError,
    "ForbiddenKeyError": errors.AccessError,
    "IncorrectPasswordError": errors.LoginError,
    "InvalidParametersError": errors.UsageError,
    "InvalidProtocolError": errors.InvalidJobError,
    "NoApiError": errors.NotFoundError,
    "NoEnoughQuotaError": errors.QuotaError,
    "NoGroupError": errors.NotFoundError,
    "NoJobConfigError": errors.NotFoundError,
    "NoJobError": errors.NotFoundError,
    "NoJobSshInfoError": errors.NotFoundError,
    "NoStorageError": errors.NotFoundError,
    "NoSupportedLogServer": errors.NotFoundError,
    "NoTagError": errors.NotFoundError,
    "NoTaskLogError": errors.NotFoundError,
    "NoUserError": errors.NotFoundError,
    "NoVirtualClusterError": errors.NotFoundError,
    "NotImplementedError": errors.UsageError,
    "ReadOnlyJobError": errors.AccessError,
    "ReadOnlyVcError": errors.AccessError,
    "RemoveAdminError": errors.AccessError,
    "RemoveRunningVcError": errors.ConflictError,
    "UnauthorizedUserError": errors.LoginError,
}
_BY_STATUS: dict[int, type[errors.OpenPAIError]] = {
    400: errors.UsageError,
    401: errors.LoginError,
    403: errors.AccessError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    413: errors.UsageError,
    429: errors.RateLimitedError,
    502: errors.UnavailableError,
    503: errors.UnavailableError,
    504: errors.UnavailableError,
}
_HINTS = {
    "NoApiError": "this server is too old for it, or pai_uri is not the address of an OpenPAI cluster",
    "UnauthorizedUserError": "log in again: `opai cluster add -a ALIAS` with your password or a new token",
    "IncorrectPasswordError": "give the right password with `opai cluster add -a ALIAS`",
    "NoJobError": "`opai job list` shows your jobs; another user's is written USER~NAME",
    "ConflictJobError": "names are used once, even by finished jobs; choose another with -j",
}
_WORDS = {502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 413: "Payload Too Large"}


def origin_of(url: str) -> str:
    """The server of an address, without path and query."""
    return "/".join(url.split("/", 3)[:3])


def is_html(response: Response) -> bool:
    """Whether a web page came instead of data."""
    return "html" in response.headers.get("content-type", "") or response.body[:15].lower().startswith(
        (b"<!doctype", b"<html")
    )


def not_json(response: Response, wanted: str = "JSON") -> errors.UnavailableError:
    """The error for an answer that cannot be from OpenPAI's REST server."""
    what = "a web page" if is_html(response) else f"something that is not {wanted}"
    place = response.headers.get("location")
    if 300 <= response.status < 400 and place:
        error = errors.UnavailableError(
            f"{response.url} sends elsewhere, to {place}",
            hint="write that address as pai_uri if you trust it (`opai cluster add`)",
        )
    else:
        error = errors.UnavailableError(
            f"{response.url} answered with {what} (HTTP {response.status})",
            hint="check that pai_uri is the address of an OpenPAI cluster (`opai cluster list`)",
            http_status=response.status if response.status >= 400 else None,
        )
    error.reason = "garbled"  # type: ignore[attr-defined]
    return error


def failure(response: Response, method: str = "GET") -> errors.OpenPAIError:
    """The error that an answer with status 3xx, 4xx or 5xx stands for."""
    status = response.status
    found = _fields(response)
    code = found.get("code") if isinstance(found.get("code"), str) else None
    if found.get("code") is None and status < 400:
        return not_json(response)
    if status == 429:
        wait = seconds_from(response.headers.get("retry-after"))
        return errors.RateLimitedError(
            f"{origin_of(response.url)} says: too many requests",
            retry_after=wait,
            hint=f"try again in {wait:g} s" if wait else "try again in a minute",
        )
    if not found and is_html(response) and status not in (401, 502, 503, 504):
        return not_json(response)
    said = found.get("message")
    message = said.strip() if isinstance(said, str) else ""
    hint = found.get("hint") if isinstance(found.get("hint"), str) else None
    kind = _class(code, status)
    if kind is errors.InvalidJobError:
        return _invalid_job(message, hint)
    if not message and found == {} and not is_html(response):
        message = response.text.strip()[:300]
    shown = message if message not in ("", "null") else f"the server answered HTTP {status}"
    if status in (502, 503, 504) and not message:
        shown = f"the gateway of {origin_of(response.url)} answered HTTP {status} ({_WORDS[status]})"
        hint = hint or "its REST server is down or starting; try again in a minute"
    if status == 413:
        shown = f"the server refuses texts this long: {message or 'over 100 kB'}"
        hint = hint or "a job spec may have 100 kB; move long scripts into files"
    if code == "NoApiError":
        shown = f"this server does not know {method} {response.url}"
    if kind is errors.ServerError and not hint:
        shown = f"{origin_of(response.url)} answered with an error of its own (HTTP {status}): {shown}"
        hint = "try again; where it repeats, its own log tells more (`opai server logs` for the local one)"
    if kind is errors.RateLimitedError:
        return errors.RateLimitedError(shown, hint=hint)
    return kind(shown, hint=hint or _HINTS.get(code or ""), code=code, http_status=status)


def _fields(response: Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _class(code: str | None, status: int) -> type[errors.OpenPAIError]:
    if code in _BY_CODE:
        return _BY_CODE[code]
    if code:
        for kind in vars(errors).values():
            if isinstance(kind, type) and issubclass(kind, errors.OpenPAIError) and kind.__name__ == code:
                return kind
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.ServerError if status >= 500 else errors.UsageError


def _invalid_job(message: str, hint: str | None) -> errors.InvalidJobError:
    try:
        found = json.loads(message)
    except ValueError:
        found = None
    if not (isinstance(found, list) and all(isinstance(item, dict) for item in found)):
        return errors.InvalidJobError(message or None, hint=hint)
    problems = []
    for item in found:
        path = str(item.get("dataPath") or "").lstrip(".")
        said = str(item.get("message") or "is wrong")
        extra = item.get("params", {})
        if isinstance(extra, dict) and extra.get("additionalProperty"):
            said += f": {extra['additionalProperty']!r}"
        problems.append(f"{path}: {said}" if path else said)
    return errors.InvalidJobError(
        "the server refuses the job: " + "; ".join(problems), problems=problems, hint=hint
    )
