"""Every error this package raises on purpose.

    OpenPAIError                exit 1   HTTP 500
    ├── UsageError              exit 2   HTTP 400   what was typed or passed makes no sense
    │   ├── InvalidJobError     exit 2   HTTP 400   a job spec breaks the rules; carries all problems
    │   └── ConfigError         exit 2   HTTP 400   clusters.json, defaults.json or an option is wrong
    ├── NotFoundError           exit 3   HTTP 404   a job, file, alias or user that is not there
    ├── ConflictError           exit 4   HTTP 409   the name is taken, or the state does not allow it
    ├── AccessError             exit 5   HTTP 403   not logged in, or not allowed
    │   └── LoginError          exit 5   HTTP 401   wrong password, expired or revoked token
    ├── UnavailableError        exit 6   HTTP 503   server down, TLS failure, not an OpenPAI server, time-out
    │   └── RateLimitedError    exit 6   HTTP 429   too many requests
    ├── QuotaError              exit 7   HTTP 403   more than the quota or the cluster allows
    ├── ServerError             exit 8   HTTP 500   the server answered with an error of its own
    └── JobFailedError          exit 10  HTTP 200   a job that was waited for did not succeed
        └── JobStoppedError     exit 11             it was stopped

An error is a sentence that names the thing and the value; `hint` says what to do next. `code` is the name
used on the wire (OpenPAI's error codes), so that the client rebuilds the same class from an answer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar


class OpenPAIError(Exception):
    """Something went wrong."""

    exit_code: ClassVar[int] = 1
    http_status: int = 500
    code: str = "UnknownError"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        code: str | None = None,
        http_status: int | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.hint = hint
        if code is not None:
            self.code = code
        if http_status is not None:
            self.http_status = http_status
        super().__init__(self.message)

    def as_dict(self) -> dict[str, Any]:
        """The error as `-o json` shows it and as the server sends it."""
        found: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            found["hint"] = self.hint
        return found


class UsageError(OpenPAIError):
    """The request makes no sense as it stands."""

    exit_code = 2
    http_status = 400
    code = "InvalidParametersError"


class InvalidJobError(UsageError):
    """The job spec is not valid."""

    code = "InvalidProtocolError"

    def __init__(
        self, message: str | None = None, *, problems: Sequence[Any] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.problems = list(problems)


class ConfigError(UsageError):
    """The configuration is not valid."""

    code = "BadConfigurationError"


class NotFoundError(OpenPAIError):
    """It is not there."""

    exit_code = 3
    http_status = 404
    code = "NotFoundError"


class ConflictError(OpenPAIError):
    """The name is already taken."""

    exit_code = 4
    http_status = 409
    code = "ConflictError"


class AccessError(OpenPAIError):
    """You are not allowed to do this."""

    exit_code = 5
    http_status = 403
    code = "ForbiddenUserError"


class LoginError(AccessError):
    """The login was refused."""

    http_status = 401
    code = "UnauthorizedUserError"


class UnavailableError(OpenPAIError):
    """The server cannot be reached."""

    exit_code = 6
    http_status = 503
    code = "UnavailableError"


class RateLimitedError(UnavailableError):
    """Too many requests."""

    http_status = 429
    code = "RateLimitedError"

    def __init__(
        self, message: str | None = None, *, retry_after: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class QuotaError(OpenPAIError):
    """More was asked for than is allowed."""

    exit_code = 7
    http_status = 403
    code = "NoEnoughQuotaError"


class ServerError(OpenPAIError):
    """The server answered with an error of its own."""

    exit_code = 8


class JobFailedError(OpenPAIError):
    """The job failed."""

    exit_code = 10
    http_status = 200
    code = "JobFailedError"


class JobStoppedError(JobFailedError):
    """The job was stopped."""

    exit_code = 11
    code = "JobStoppedError"
