"""`<% $parameters.x %>` and its relatives: commands and registry credentials rendered as OpenPAI does it."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Mapping

from openpaisdk.protocol.reading import prerequisite
from openpaisdk.protocol.scalars import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.protocol.reading import Spec

DOCKER_HUB = "https://index.docker.io/v1/"

_TAG = re.compile(r"<%((?:(?!<%|%>).)*)%>", re.DOTALL)
_INDEX = re.compile(r"\[(\d+)\]")
_SIGNS = tuple("#^/>{&=!")  # Mustache's sections, partials, unescaped values, delimiters and comments

_Tag = namedtuple("_Tag", "start end sign name")


def render(text: str, context: Mapping[str, object]) -> str:
    """The text with every known reference replaced and the ends trimmed.

    Unknown references stay as they are, so that secrets can be filled in later. Nothing is escaped. What
    Mustache calls sections, partials and comments disappears.
    """
    rendered: list[str] = []
    at = 0
    tags = _tags(text)
    section_ends = _section_ends(tags)
    for tag in tags:
        if tag.start < at:  # inside a section
            continue
        rendered.append(text[at : tag.start])
        at = section_ends.get(tag.start, tag.end)
        if not tag.sign:
            value = lookup(tag.name, context)
            rendered.append(text[tag.start : tag.end] if value is None else as_text(value))
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
    found = (_INDEX.sub(r".\1", tag.name) for tag in _tags(text) if not tag.sign and tag.name)
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


def _tags(text: str) -> list[_Tag]:
    found = []
    for match in _TAG.finditer(text):
        inside = match[1].strip()
        sign = inside[:1] if inside[:1] in _SIGNS else ""
        found.append(_Tag(match.start(), match.end(), sign, inside[len(sign) :].strip()))
    return found


def _section_ends(tags: list[_Tag]) -> dict[int, int]:
    """Start of a section's first tag -> end of its last; a section that is never closed has no body."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for tag in tags:
        if tag.sign in ("#", "^"):
            opened.setdefault(tag.name, []).append(tag.start)
        elif tag.sign == "/" and opened.get(tag.name):
            ends[opened[tag.name].pop()] = tag.end
    return ends
