"""Protocol v1, the JSON of OpenPAI up to 0.17: check it, convert it to v2 without changing what it means."""

from __future__ import annotations

import re

from openpaisdk.protocol.document import Document
from openpaisdk.protocol.names import normalise_role, safe_name
from openpaisdk.protocol.problems import MASK, Problem
from openpaisdk.protocol.scalars import as_text
from openpaisdk.protocol.schema import identifier
from openpaisdk.protocol.shapes import AnyMapping, ListOf, Record, Report, Text, Whole, is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXT = Text()
_WORD = Text(r"[A-Za-z0-9._~]+\Z", "letters, digits, `.`, `_` and `~`")
_COUNT = Whole(1, or_null=True)

_PORT = Record({"label": _WORD, "beginAt": Whole(0), "portNumber": Whole(0)}, ("label",), unknown="lenient")
_ROLE = Record(
    {
        "name": _WORD,
        "taskNumber": Whole(1),
        "cpuNumber": Whole(0),
        "memoryMB": Whole(0),
        "gpuNumber": Whole(0),
        "shmMB": Whole(0),
        "command": Text(words="a command", empty=False),
        "portList": ListOf(_PORT),
        "minFailedTaskCount": _COUNT,
        "minSucceededTaskCount": _COUNT,
    },
    ("name", "command"),
    unknown="lenient",
)
_JOB = Record(
    {
        "jobName": Text(r"[A-Za-z0-9\-._~]+\Z", "letters, digits, `-`, `.`, `_` and `~`", repair=safe_name),
        "image": Text(words="an image", empty=False),
        "authFile": _TEXT,
        "dataDir": _TEXT,
        "outputDir": _TEXT,
        "codeDir": _TEXT,
        "virtualCluster": _TEXT,
        "gpuType": _TEXT,
        "retryCount": Whole(-2),
        "killAllOnCompletedTaskNumber": Whole(),
        "jobEnvs": AnyMapping(),
        "extras": AnyMapping(),
        "taskRoles": ListOf(_ROLE, at_least=1),
    },
    ("jobName", "image", "taskRoles"),
    unknown="lenient",
)

_NOTICE = "echo 'converted from a version 1 job: its data, output and code folders are not copied' >&2"
_FOLDERS = (
    ("dataDir", "data", "PAI_DATA_DIR", "$data.uri[0]"),
    ("outputDir", "output", "PAI_OUTPUT_DIR", "$output.uri"),
    ("codeDir", "script", "PAI_CODE_DIR", "$script.uri"),
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def is_v1(data: Any) -> bool:
    return isinstance(data, dict) and "jobName" in data and "protocolVersion" not in data


def check_v1(job: Document | Any) -> list[Problem]:
    """Every problem of a v1 job in the order of the text."""
    document = job if isinstance(job, Document) else None
    data = document.data if document else job
    report = Report(document)
    _JOB.check(data, (), report)
    roles = data.get("taskRoles") if isinstance(data, dict) else None
    seen: set[Any] = set()
    for index, role in enumerate(roles if isinstance(roles, list) else ()):
        if isinstance(role, dict):
            _check_role(role, index, seen, report)
    return sorted(report.problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def _check_role(role: dict[str, Any], index: int, seen: set[Any], report: Report) -> None:
    at = ("taskRoles", index)
    name = role.get("name")
    if isinstance(name, str):
        if name in seen:
            report.add((*at, "name"), f"there is already a task role named {name!r}", "duplicate", value=name)
        seen.add(name)
    tasks, memory = role.get("taskNumber", 1), role.get("memoryMB", 100)
    for key in ("minFailedTaskCount", "minSucceededTaskCount"):
        if is_whole(role.get(key)) and is_whole(tasks) and role[key] > tasks:
            message = f"expected at most the {tasks} tasks of the role, got {role[key]}"
            report.add((*at, key), message, "maximum", value=role[key])
    if is_whole(role.get("shmMB")) and is_whole(memory) and role["shmMB"] > memory:
        message = f"expected at most the {memory} MB of the role, got {role['shmMB']}"
        report.add((*at, "shmMB"), message, "maximum", value=role["shmMB"])


def from_v1(data: dict[str, Any], *, auth: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """The same job as protocol v2.

    `auth` is what the three lines of `authFile` say: registry, user, password; without it they are masked.
    """
    spec: dict[str, Any] = {
        "protocolVersion": 2,
        "name": safe_name(data["jobName"]) or "job",
        "type": "job",
        "jobRetryCount": max(0, data.get("retryCount") or 0),  # v2 has no -1 and -2
    }
    spec["prerequisites"] = _prerequisites(data, auth)
    if data.get("jobEnvs"):
        spec["parameters"] = dict(data["jobEnvs"])
    if data.get("authFile"):
        _, user, password = auth or ("", MASK, MASK)
        spec["secrets"] = {"registry": {"username": user, "password": password}}
    names = _role_names([role["name"] for role in data["taskRoles"]])
    spec["taskRoles"] = {names[role["name"]]: _task_role(role, data, names) for role in data["taskRoles"]}
    exports = _exports(data)
    spec["deployments"] = [
        {"name": "default", "taskRoles": {name: {"preCommands": exports} for name in spec["taskRoles"]}}
    ]
    spec["defaults"] = {"virtualCluster": data.get("virtualCluster") or "default", "deployment": "default"}
    extras = dict(data.get("extras") or {})
    if data.get("gpuType"):
        extras.setdefault("gpuType", data["gpuType"])  # v2 has no place for it, but it is not ours to lose
    if extras:
        spec["extras"] = extras
    return spec


def _prerequisites(data: dict[str, Any], auth: tuple[str, str, str] | None) -> list[dict[str, Any]]:
    image: dict[str, Any] = {"name": "default", "type": "dockerimage", "uri": data["image"]}
    if data.get("authFile"):
        image["auth"] = {
            "username": "<% $secrets.registry.username %>",
            "password": "<% $secrets.registry.password %>",
            **({"registryuri": auth[0]} if auth and auth[0] else {}),
        }
    folders = [
        {"name": "default", "type": kind, "uri": [data[key]] if kind == "data" else data[key]}
        for key, kind, _, _ in _FOLDERS
        if data.get(key)
    ]
    return [image, *folders]


def _role_names(old: list[str]) -> dict[str, str]:
    """v1 name -> v2 name; v1 allows characters that v2 forbids and the cluster drops, so two may meet."""
    names: dict[str, str] = {}
    for name in old:
        stem = normalise_role(name).lstrip("0123456789")[:60] or "role"
        new, number = stem, 2
        while new in names.values():
            new, number = f"{stem}{number}", number + 1
        names[name] = new
    return names


def _task_role(role: dict[str, Any], data: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    resources = {
        "cpu": role.get("cpuNumber", 1),
        "memoryMB": role.get("memoryMB", 100),
        "gpu": role.get("gpuNumber", 0),
    }
    if ports := role.get("portList"):
        # beginAt is dropped: ports are always allotted by the cluster in v2.
        resources["ports"] = {
            identifier(port["label"]) or f"port{index}": port.get("portNumber", 1)
            for index, port in enumerate(ports)
        }
    # An explicit null meant "never" in v1; v2 reads null as its default, and -1 as never.
    failed, succeeded = role.get("minFailedTaskCount", 1), role.get("minSucceededTaskCount")
    converted = {
        "instances": role.get("taskNumber", 1),
        "completion": {
            "minFailedInstances": -1 if failed is None else failed,
            "minSucceededInstances": -1 if succeeded is None else succeeded,
        },
        "dockerImage": "default",
        **{kind: "default" for key, kind, _, _ in _FOLDERS if data.get(key)},
        "extraContainerOptions": {"shmMB": role.get("shmMB") or 64},
        "resourcePerInstance": resources,
        "commands": [_with_new_names(role["command"], names)],
    }
    return converted


def _with_new_names(command: str, names: dict[str, str]) -> str:
    """Variables such as PAI_TASK_ROLE_ps_server_HOST_LIST carry the role name, so they follow it."""
    for old, new in names.items():
        if old != new:
            command = re.sub(rf"\b(PAI_(?:\w+_)?){re.escape(old)}(?=_)", rf"\g<1>{new}", command)
    return command


def _exports(data: dict[str, Any]) -> list[str]:
    """Double quotes for the folders, whose v1 addresses may hold $PAI_USER_NAME and the like."""
    folders = [f'export {name}="<% {value} %>"' for key, _, name, value in _FOLDERS if data.get(key)]
    variables = [
        f"export {key}={_quoted(key, as_text(value))}"
        for key, value in (data.get("jobEnvs") or {}).items()
        if _VARIABLE.match(key) and value is not None
    ]
    return [_NOTICE, *folders, *variables]


def _quoted(key: str, text: str) -> str:
    """By reference, so that editing the parameter works, unless the text would break out of the quotes."""
    import shlex

    return shlex.quote(text) if "'" in text else f"'<% $parameters.{key} %>'"
