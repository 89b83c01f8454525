"""Errors as WebHDFS tells them: a RemoteException with the name of a Java class, which clients look at."""

from __future__ import annotations

import errno
from typing import Any

from openpaisdk.errors import (
    AccessError,
    ConflictError,
    LoginError,
    NotFoundError,
    OpenPAIError,
    QuotaError,
    UsageError,
)

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# Class -> Java class and status. The first that fits counts, so subclasses come before their parents.
_NAMES: tuple[tuple[type[Exception], str, int], ...] = (
    (LoginError, "java.lang.SecurityException", 401),
    (AccessError, "org.apache.hadoop.security.AccessControlException", 403),
    (NotFoundError, "java.io.FileNotFoundException", 404),
    (ConflictError, "org.apache.hadoop.fs.FileAlreadyExistsException", 403),
    (QuotaError, "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", 403),
    (UsageError, "java.lang.IllegalArgumentException", 400),
    (FileNotFoundError, "java.io.FileNotFoundException", 404),
    (NotADirectoryError, "java.io.FileNotFoundException", 404),
    (FileExistsError, "org.apache.hadoop.fs.FileAlreadyExistsException", 403),
    (PermissionError, "org.apache.hadoop.security.AccessControlException", 403),
)


def describe(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the body that tell of an error."""
    name, status = "java.io.IOException", 500
    for kind, found, number in _NAMES:
        if isinstance(error, kind):
            name, status = found, number
            break
    message = "The server failed."
    if isinstance(error, OpenPAIError):
        message = f"{error.message} {error.hint}" if error.hint else error.message
    elif isinstance(error, OSError):
        message = error.strerror or message
        if error.errno in _DISK_FULL:
            name, status = "org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException", 507
            message = "The disk of the server is full; nothing was stored."
        elif error.errno == errno.ELOOP:
            name, status = "org.apache.hadoop.security.AccessControlException", 403
            message = "A link on the way leads somewhere else than it did."
        elif error.errno == errno.ENAMETOOLONG:
            name, status = "java.lang.IllegalArgumentException", 400
    short = name.rpartition(".")[2].rpartition("$")[2]
    ours = error.as_dict() if isinstance(error, OpenPAIError) else {"code": _code(status), "message": message}
    return status, {
        "RemoteException": {"exception": short, "javaClassName": name, "message": message},
        **ours,
    }


def _code(status: int) -> str:
    """The same error in the words of the REST API, which our own client reads."""
    if status == 507:
        return "NoEnoughQuotaError"
    return {403: "ForbiddenUserError", 404: "NotFoundError", 400: "InvalidParametersError"}.get(
        status, "UnknownError"
    )
