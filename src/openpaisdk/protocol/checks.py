"""All that is wrong in a job at once: the server's schema, references between parts, what bites people."""

from __future__ import annotations

import re
from collections.abc import Iterator

from openpaisdk.protocol.document import Document
from openpaisdk.protocol.names import normalise_role
from openpaisdk.protocol.problems import MASK, Path, Problem, reject
from openpaisdk.protocol.schema import JOB
from openpaisdk.protocol.shapes import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_TEXT_BYTES = 100 * 1024

_REFERENCES = {"dockerImage": "dockerimage", "data": "data", "output": "output", "script": "script"}
_PORTABLE_ROLE = re.compile(r"[a-z][a-z0-9]{0,62}\Z")
_SCHEMA_ROLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")


def check(job: Document | Any, *, strict: bool = True) -> list[Problem]:
    """Every problem of a v2 job in the order of the text; none means that it is valid.

    Not strict is what a server has to insist on; strict adds what OpenPAI's server accepts and then fails on.
    """
    document = job if isinstance(job, Document) else None
    data = document.data if document else job
    report = Report(document)
    JOB.check(data, (), report)
    if isinstance(data, dict):
        _check_prerequisites(data, report)
        _check_deployments(data, report)
        _check_collisions(data, report)
        if strict:
            _check_portable(data, report)
            _check_masks(data, report)
    if strict:
        _check_size(document, data, report)
    problems = _said_once(report.problems) if strict else report.problems
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def require_valid(job: Document | Any, *, strict: bool = True) -> dict[str, Any]:
    """The data of a valid job, with 2.0 instances as 2; otherwise InvalidJobError with every problem."""
    if problems := check(job, strict=strict):
        raise reject(problems)
    data: dict[str, Any] = job.data if isinstance(job, Document) else job
    _make_whole(data, ("jobRetryCount",))
    for role in data["taskRoles"].values():
        _make_whole(role, ("instances", "taskRetryCount"))
        _make_whole(role["resourcePerInstance"], ("cpu", "memoryMB", "gpu"))
        for part in ("completion", "extraContainerOptions"):
            _make_whole(role.get(part, {}), tuple(role.get(part, {})))
        _make_whole(ports := role["resourcePerInstance"].get("ports", {}), tuple(ports))
    return data


def cautions(job: Document | Any) -> list[Problem]:
    """What is allowed but hardly meant: references and roles that are not there, secrets that get garbled."""
    from openpaisdk.protocol.templates import lookup, references, without_tags

    document = job if isinstance(job, Document) else None
    data: Any = document.data if document else job
    report = Report(document)
    context = {"$parameters": data.get("parameters") or {}, "$secrets": data.get("secrets") or {}}
    for at, command in _commands(data):
        if "<%" in without_tags(command):
            message = "`<%` is not followed by `%>`; OpenPAI's server refuses such a command"
            report.add(at, message, "template", suggestion="write it as `<` and `%` in separate quotes")
        for reference in references(command):
            root, _, rest = reference.partition(".")
            if root not in context:
                continue
            value = lookup(reference, context)
            if value is None:
                suggestion = report.did_you_mean(rest, context[root])
                message = f"nothing stands behind `{reference}`, the text stays as it is"
                report.add(at, message, "reference", value=reference, suggestion=suggestion)
            elif root == "$secrets" and isinstance(value, str) and re.search("[&<>\"'`=/]", value):
                message = f"`{reference}` has characters that OpenPAI's own runtime changes in commands"
                report.add(at, message, "secret", value=reference, suggestion="avoid & < > \" ' / = ` in it")
    _mistrust_deployments(data, report)
    return report.problems


def _make_whole(holder: Any, keys: tuple[str, ...]) -> None:
    for key in keys:
        if isinstance(holder.get(key), float) and holder[key].is_integer():
            holder[key] = int(holder[key])


def _roles(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    roles = data.get("taskRoles")
    for name, role in roles.items() if isinstance(roles, dict) else ():
        if isinstance(name, str) and isinstance(role, dict):
            yield name, role


def _items(data: dict[str, Any], key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    found = data.get(key)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            yield index, item


def _commands(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    for name, role in _roles(data):
        for index, command in enumerate(role.get("commands") or ()):
            yield ("taskRoles", name, "commands", index), str(command)
    for place, deployment in _items(data, "deployments"):
        for name, part in (deployment.get("taskRoles") or {}).items():
            for key in ("preCommands", "postCommands"):
                for index, command in enumerate(part.get(key) or ()):
                    yield ("deployments", place, "taskRoles", name, key, index), str(command)


def _check_prerequisites(data: dict[str, Any], report: Report) -> None:
    known: dict[str, list[str]] = {kind: [] for kind in _REFERENCES.values()}
    for index, item in _items(data, "prerequisites"):
        names = known.get(item.get("type", "")) if isinstance(item.get("type"), str) else None
        if names is None:
            continue
        if item["name"] in names:
            message = f"there is already a {item['type']} prerequisite named {item['name']!r}"
            report.add(("prerequisites", index, "name"), message, "duplicate", value=item["name"])
        names.append(item["name"])
    every_name = [name for names in known.values() for name in names]
    for role_name, role in _roles(data):
        for field, kind in _REFERENCES.items():
            if isinstance(role.get(field), str) and role[field] not in known[kind]:
                _report_missing(("taskRoles", role_name, field), role[field], kind, known[kind], report)
        wanted = role.get("prerequisites")
        for index, name in enumerate(wanted if isinstance(wanted, list) else ()):
            if isinstance(name, str) and name not in every_name:
                at = ("taskRoles", role_name, "prerequisites", index)
                message = f"there is no prerequisite named {name!r}"
                report.add(
                    at, message, "reference", value=name, suggestion=report.did_you_mean(name, every_name)
                )


def _report_missing(at: Path, name: str, kind: str, names: list[str], report: Report) -> None:
    uri = "[ADDRESS]" if kind == "data" else "ADDRESS"
    entry = f"{{type: {kind}, name: {name or 'default'}, uri: {uri}}}"
    suggestion = report.did_you_mean(name, names) or f"add {entry} to `prerequisites`"
    report.add(
        at, f"there is no {kind} prerequisite named {name!r}", "reference", value=name, suggestion=suggestion
    )


def _check_deployments(data: dict[str, Any], report: Report) -> None:
    names: list[str] = []
    for index, item in _items(data, "deployments"):
        if item["name"] in names:
            message = f"there is already a deployment named {item['name']!r}"
            report.add(("deployments", index, "name"), message, "duplicate", value=item["name"])
        names.append(item["name"])
    defaults = data.get("defaults")
    wanted = defaults.get("deployment") if isinstance(defaults, dict) else None
    if isinstance(wanted, str) and wanted not in names:
        at = ("defaults", "deployment")
        message = f"there is no deployment named {wanted!r}"
        report.add(at, message, "reference", value=wanted, suggestion=report.did_you_mean(wanted, names))


def _mistrust_deployments(data: dict[str, Any], report: Report) -> None:
    """Commands for a role that is not there would never run."""
    roles = [name for name, _ in _roles(data)]
    for index, deployment in _items(data, "deployments"):
        for name in deployment.get("taskRoles") or ():
            if name not in roles:
                report.add(
                    ("deployments", index, "taskRoles", name),
                    f"there is no role named {name!r}, its commands will not run",
                    "reference",
                    value=name,
                    suggestion=report.did_you_mean(name, roles),
                    on_key=True,
                )


def _check_collisions(data: dict[str, Any], report: Report) -> None:
    first: dict[str, str] = {}
    for name, _ in _roles(data):
        normal = normalise_role(name)
        if normal in first:
            message = f"the roles `{first[normal]}` and `{name}` are both `{normal}` to the cluster"
            report.add(
                ("taskRoles", name),
                message,
                "duplicate",
                value=name,
                suggestion="rename one of them",
                on_key=True,
            )
        first.setdefault(normal, name)


def _check_portable(data: dict[str, Any], report: Report) -> None:
    for name, role in _roles(data):
        if _SCHEMA_ROLE.match(name) and not _PORTABLE_ROLE.match(name):
            better = normalise_role(name).lstrip("0123456789")[:63]
            report.add(
                ("taskRoles", name),
                f"expected a role name of at most 63 characters a-z and 0-9, got {name!r}",
                "name",
                value=name,
                suggestion=f"`{better}` would do" if better else None,
                on_key=True,
            )
        if "instances" not in role:
            report.add(
                ("taskRoles", name),
                "the key `instances` is missing; OpenPAI's server fails without it",
                "required",
                suggestion="write `instances: 1`",
                on_key=True,
                params={"missingProperty": "instances"},
            )


def _check_masks(data: dict[str, Any], report: Report) -> None:
    """What a cluster shows in place of a password must not be sent as one."""
    used = {role.get("dockerImage") for _, role in _roles(data) if isinstance(role.get("dockerImage"), str)}
    places: list[Path] = [
        ("prerequisites", index, "auth", "password")
        for index, item in _items(data, "prerequisites")
        if item["name"] in used
        and isinstance(item.get("auth"), dict)
        and item["auth"].get("password") == MASK
    ]
    for at in [*places, *_masked_in(data.get("secrets"), ("secrets",))]:
        report.add(
            at,
            f"`{MASK}` is only the mask of a value, which cannot be read back",
            "secret",
            value=MASK,
            suggestion=f"give it again, such as with --set {'.'.join(map(str, at))}=VALUE",
        )


def _masked_in(secrets: Any, at: Path) -> Iterator[Path]:
    for name, value in secrets.items() if isinstance(secrets, dict) else ():
        if value == MASK:
            yield (*at, name)
        yield from _masked_in(value, (*at, name))


def _said_once(problems: list[Problem]) -> list[Problem]:
    """Without the keys that are only missing because they are misspelt, which is reported of its own."""
    misspelt = {
        (problem.steps[:-1], problem.suggestion)
        for problem in problems
        if problem.keyword == "additionalProperties" and problem.suggestion
    }
    return [
        problem
        for problem in problems
        if problem.keyword != "required"
        or (problem.steps, f"did you mean `{problem.params.get('missingProperty')}`?") not in misspelt
    ]


def _check_size(document: Document | None, data: Any, report: Report) -> None:
    if document:
        size = len(document.text.encode(errors="replace"))
    else:
        import json

        size = len(json.dumps(data, default=str))
    if size > MAX_TEXT_BYTES:
        report.add(
            (),
            f"the text has {size} bytes, a server takes at most {MAX_TEXT_BYTES}",
            "size",
            value=size,
            suggestion="move long scripts into files of the code that is shipped with the job",
        )
