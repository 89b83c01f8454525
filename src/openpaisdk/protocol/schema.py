"""Protocol v2 as OpenPAI's server enforces it, written as data."""

from __future__ import annotations

import re

from openpaisdk.protocol.names import LONGEST_JOB_NAME, normalise_role, safe_name
from openpaisdk.protocol.problems import Path
from openpaisdk.protocol.shapes import AnyMapping, Choice, ListOf, Named, Number, Record, Report, Text, Whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from openpaisdk.protocol.shapes import Shape

PREREQUISITE_TYPES = ("dockerimage", "script", "output", "data")

_IDENTIFIER = r"[a-zA-Z_][a-zA-Z0-9_]*\Z"
_IDENTIFIER_WORDS = "letters, digits and `_`, and no digit first"

_NAME = Text(
    r"[a-zA-Z0-9_-]+\Z",
    "a name of letters, digits, `-` and `_`",
    longest=LONGEST_JOB_NAME,
    repair=safe_name,
)
_TEXT = Text()
_VERSION = Choice(2, "2")


def identifier(text: str) -> str:
    """The nearest text that is allowed as a role name or port label; may be empty."""
    return re.sub(r"[^a-zA-Z0-9_]+", "_", text).lstrip("0123456789").rstrip("_")


def _role_name(text: str) -> str:
    return normalise_role(text).lstrip("0123456789")


_COMMON: dict[str, Shape] = {
    "protocolVersion": _VERSION,
    "name": _NAME,
    "type": Choice(*PREREQUISITE_TYPES),
    "version": Number(),
    "contributor": _TEXT,
    "description": _TEXT,
}
_FILES: dict[str, Shape] = {**_COMMON, "uri": _TEXT, "plugin": _TEXT, "require": ListOf(_TEXT)}
_AUTH = Record({"username": _TEXT, "password": _TEXT, "registryuri": _TEXT}, unknown="allowed")


class Prerequisite:
    """One of the four kinds; the kind decides which keys there may be."""

    _KINDS: ClassVar[dict[Any, Shape]] = {
        "script": Record(_FILES, ("type", "name"), unknown="allowed"),
        "output": Record(_FILES, ("type", "name"), unknown="allowed"),
        "data": Record({**_FILES, "uri": ListOf(_TEXT)}, ("type", "name"), unknown="allowed"),
        "dockerimage": Record({**_COMMON, "uri": _TEXT, "auth": _AUTH}, ("type", "name", "uri")),
    }
    _UNKNOWN = Record(_COMMON, ("type", "name"), unknown="allowed")

    def check(self, value: Any, at: Path, report: Report) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        shape = self._KINDS.get(kind) if isinstance(kind, str) else None
        (shape or self._UNKNOWN).check(value, at, report)


_COMMANDS = ListOf(_TEXT, at_least=1)

_RESOURCES = Record(
    {
        "cpu": Whole(),
        "memoryMB": Whole(),
        "gpu": Whole(),
        "ports": Named(Whole(), _IDENTIFIER, _IDENTIFIER_WORDS, identifier),
    },
    ("cpu", "memoryMB", "gpu"),
)

_TASK_ROLE = Record(
    {
        "protocolVersion": _VERSION,
        "instances": Whole(1),
        "completion": Record(
            {
                "minFailedInstances": Whole(or_null=True),
                "minSucceededInstances": Whole(or_null=True),
            }
        ),
        "taskRetryCount": Whole(),
        "prerequisites": ListOf(_TEXT),
        "dockerImage": _TEXT,
        "data": _TEXT,
        "output": _TEXT,
        "script": _TEXT,
        "extraContainerOptions": Record({"shmMB": Whole()}, unknown="allowed"),
        "resourcePerInstance": _RESOURCES,
        "commands": _COMMANDS,
    },
    ("dockerImage", "resourcePerInstance", "commands"),
)

_DEPLOYMENT = Record(
    {
        "protocolVersion": _VERSION,
        "name": _NAME,
        "taskRoles": Named(
            Record({"preCommands": _COMMANDS, "postCommands": _COMMANDS}),
            _IDENTIFIER,
            _IDENTIFIER_WORDS,
            _role_name,
        ),
    },
    ("name", "taskRoles"),
    unknown="allowed",
)

JOB = Record(
    {
        "protocolVersion": _VERSION,
        "name": _NAME,
        "type": Choice("job"),
        "version": Number(),
        "contributor": _TEXT,
        "description": _TEXT,
        "prerequisites": ListOf(Prerequisite(), at_least=1),
        "parameters": AnyMapping(),
        "secrets": AnyMapping(),
        "jobRetryCount": Whole(0),
        "taskRoles": Named(_TASK_ROLE, _IDENTIFIER, _IDENTIFIER_WORDS, _role_name),
        "deployments": ListOf(_DEPLOYMENT, at_least=1),
        "defaults": Record({"deployment": _TEXT, "virtualCluster": _TEXT}, unknown="allowed"),
        "extras": AnyMapping(),
    },
    ("protocolVersion", "name", "type", "taskRoles"),
)
