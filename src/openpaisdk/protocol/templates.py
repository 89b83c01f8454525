"""`<% $parameters.x %>` and its relatives: commands and registry credentials rendered as OpenPAI does it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from openpaisdk.protocol.reading import Spec, prerequisite
from openpaisdk.protocol.scalars import as_text

DOCKER_HUB = "https://index.docker.io/v1/"

_TAG = re.compile(r"<%\s*([#^/>{&=!]?)\s*((?:(?!<%|%>).)*?)\s*%>", re.DOTALL)
_INDEX = re.compile(r"\[(\d+)\]")


def render(text: str, context: Mapping[str, object]) -> str:
    """The text with every known reference replaced and the ends trimmed.

    Unknown references stay as they are, so that secrets can be filled in later. Nothing is escaped. What
    Mustache calls sections, partials and comments disappears.
    """
    rendered: list[str] = []
    at = 0
    while found := _TAG.search(text, at):
        rendered.append(text[at : found.start()])
        at = found.end()
        sign, reference = found.groups()
        if sign in ("#", "^"):
            at = _end_of_section(text, at, reference)
        elif not sign:
            value = lookup(reference, context)
            rendered.append(found[0] if value is None else as_text(value))
    rendered.append(text[at:])
    return "".join(rendered).strip()


def lookup(reference: str, context: Mapping[str, object]) -> Any:
    """The value behind `$parameters.a.b` or `$data.uri[0]`; None where there is none."""
    value: Any = context
    for step in _INDEX.sub(r".\1", reference).split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def references(text: str) -> list[str]:
    """Every reference in the text, in order, each once, with `[n]` written as `.n`."""
    found = (_INDEX.sub(r".\1", name) for sign, name in _TAG.findall(text) if not sign and name)
    return list(dict.fromkeys(found))


def without_tags(text: str) -> str:
    return _TAG.sub("", text)


def unresolved(text: str) -> list[str]:
    """The references that rendering has left in a text."""
    return [name for name in references(text) if name.startswith("$")]


def is_reference(value: Any) -> bool:
    """Whether a value is nothing but one reference, and so gives nothing away."""
    return isinstance(value, str) and _TAG.fullmatch(value.strip()) is not None


def commands(spec: Spec, role: str) -> list[str]:
    """What a task of this role runs: the default deployment's commands around the role's own."""
    wanted = (spec.get("defaults") or {}).get("deployment")
    around: Mapping[str, Any] = {}
    for deployment in spec.get("deployments") or ():
        if wanted is not None and deployment["name"] == wanted:
            around = deployment["taskRoles"].get(role) or {}
    own = spec["taskRoles"][role]["commands"]
    return [*around.get("preCommands", ()), *own, *around.get("postCommands", ())]


def entry_script(spec: Spec, role: str, *, secrets: Mapping[str, Any] | None = None) -> str:
    """The script of a task role; `$secrets` references stay unless the secrets are given."""
    chosen = spec["taskRoles"][role]
    context: dict[str, object] = {"$parameters": spec.get("parameters") or {}}
    for kind in ("script", "output", "data"):
        if found := prerequisite(spec, kind, chosen.get(kind)):
            context[f"${kind}"] = found
    script = render("\n".join(command.strip() for command in commands(spec, role)), context)
    # A second pass, because a parameter may itself refer to a secret.
    return script if secrets is None else render(script, {"$secrets": secrets})


def render_auth(
    spec: Spec, role: str, *, secrets: Mapping[str, Any] | None = None
) -> tuple[str, str, str] | None:
    """`(registry, user, password)` for the image of a role, nothing where it needs none.

    The secrets are those of the spec unless others are given.
    """
    image = prerequisite(spec, "dockerimage", spec["taskRoles"][role].get("dockerImage"))
    auth = (image or {}).get("auth")
    if not auth:
        return None
    context = {"$secrets": secrets if secrets is not None else spec.get("secrets") or {}}
    registry, user, password = (
        render(as_text(auth.get(key) or ""), context) for key in ("registryuri", "username", "password")
    )
    return registry or DOCKER_HUB, user, password


def _end_of_section(text: str, at: int, name: str) -> int:
    """Behind the closing tag of a section; a section that is never closed has no body."""
    depth = 1
    for found in _TAG.finditer(text, at):
        if found[2] == name:
            depth += {"#": 1, "^": 1, "/": -1}.get(found[1], 0)
        if depth == 0:
            return found.end()
    return at
