"""Names and numbers that are computed, never stored: job ids, role names, unique job names, ports."""

from __future__ import annotations

import os
import re

LONGEST_JOB_NAME = 255

_OUTSIDE_JOB_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_OUTSIDE_ROLE = re.compile(r"[^a-z0-9]")


def job_path(user: str, name: str) -> str:
    """The identity of a job as it stands in URLs: `user~name`."""
    return f"{user}~{name}"


def split_job(text: str, default_user: str | None = None) -> tuple[str, str]:
    """`user~name` (also percent-encoded) or a bare name of the default user, as `(user, name)`."""
    text = text.replace("%7E", "~").replace("%7e", "~")
    user, mark, name = text.partition("~")
    if not mark:
        user, name = default_user or "", text
    if not user or not name:
        from openpaisdk.errors import UsageError

        raise UsageError(f"{text!r} does not name a job", hint="write NAME or USER~NAME")
    return user, name


def debug_id(user: str, name: str) -> str:
    """The internal id of a job: the MD5 of its path in hexadecimal."""
    import hashlib

    return hashlib.md5(job_path(user, name).encode(), usedforsecurity=False).hexdigest()


def normalise_role(name: str) -> str:
    """A task role as it appears in statuses, URLs and runtime variables."""
    return _OUTSIDE_ROLE.sub("", name.lower())


def safe_name(text: str) -> str:
    """The nearest text that is allowed as the name of a job, prerequisite or deployment; may be empty."""
    return _OUTSIDE_JOB_NAME.sub("-", text).strip("-")[:LONGEST_JOB_NAME].rstrip("-")


def unique_name(stem: str) -> str:
    """A valid job name that nobody has used: the stem and eight random hexadecimal digits."""
    return f"{safe_name(stem)[: LONGEST_JOB_NAME - 9].rstrip('-') or 'job'}-{os.urandom(4).hex()}"


def allot_port(pod_uid: str, label: str, index: int, start: int = 15000, end: int = 40000) -> int:
    """The port that server and runtime both compute for one task, so that nobody has to pass it on."""
    import hashlib

    digest = hashlib.md5(f"[{pod_uid}][{label}][{index}]".encode(), usedforsecurity=False).hexdigest()
    total = int(digest[:12], 16) + int(digest[12:24], 16) + int(digest[24:], 16)
    return total % (end - start) + start
