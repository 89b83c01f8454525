"""`--set taskRoles.worker.instances=4`: change one value of a job spec by its path."""

from __future__ import annotations

import re

from openpaisdk.errors import UsageError
from openpaisdk.protocol.problems import nearest, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STEP = re.compile(r"((?:\\.|[^\\.\[\]])+)|\[(\d+)\]")
_HINT = "write PATH=VALUE, for example taskRoles.worker.instances=4"


def set_value(data: dict[str, Any], assignment: str) -> None:
    """Set one value, typed as YAML would read it; mappings that are missing on the way are made.

    List entries are `a.0.b` or `a[0].b`, one behind the last is new; a dot inside a key is written `\\.`.
    """
    path, equals, text = assignment.partition("=")
    steps = _steps(path)
    if not equals or not steps:
        raise UsageError(f"{assignment!r} is not an assignment", hint=_HINT)
    _refuse_misspelt_role(data, steps)
    holder: Any = data
    for index, step in enumerate(steps[:-1]):
        held = _get(holder, step, steps[:index])
        if held is None:
            held = [] if isinstance(steps[index + 1], int) else {}
            _put(holder, step, held, steps[:index])
        holder = held
    _put(holder, steps[-1], _value(text, assignment), steps[:-1])


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise UsageError(f"the path {path!r} is not understood at {path[at:]!r}", hint=_HINT)
        steps.append(int(found[2]) if found[2] else re.sub(r"\\(.)", r"\1", found[1]))
        at = found.end()
        if at < len(path) and path[at] == "." and at + 1 < len(path):
            at += 1
    return steps


def _refuse_misspelt_role(data: dict[str, Any], steps: list[str | int]) -> None:
    """One value of a role that is not there hardly means a new role when one with such a name is."""
    roles = data.get("taskRoles")
    if steps[0] != "taskRoles" or len(steps) < 3 or not isinstance(roles, dict) or str(steps[1]) in roles:
        return
    found = nearest(str(steps[1]), [name for name in roles if isinstance(name, str)])
    if found is not None:
        raise UsageError(
            f"there is no task role `{steps[1]}`; did you mean `{found}`?",
            hint=f"to add a role, set it whole: taskRoles.{steps[1]}={{...}}",
        )


def _value(text: str, assignment: str) -> Any:
    if text[:1] in ("[", "{", "'", '"'):
        from openpaisdk.errors import InvalidJobError
        from openpaisdk.protocol.document import load

        try:
            return load(text).data
        except InvalidJobError as error:
            raise UsageError(
                f"the value in {assignment!r} cannot be read: {error.problems[0].message}"
            ) from None
    from openpaisdk.protocol.scalars import resolve

    return resolve(text) if text else ""


def _get(holder: Any, step: str | int, before: list[str | int]) -> Any:
    if isinstance(holder, list):
        index = _index(holder, step, before)
        return holder[index] if index < len(holder) else None
    if isinstance(holder, dict):
        return holder.get(str(step))
    raise _no_container(holder, step, before)


def _put(holder: Any, step: str | int, value: Any, before: list[str | int]) -> None:
    if isinstance(holder, list):
        index = _index(holder, step, before)
        holder[index : index + 1] = [value]
    elif isinstance(holder, dict):
        holder[str(step)] = value
    else:
        raise _no_container(holder, step, before)


def _index(holder: list[Any], step: str | int, before: list[str | int]) -> int:
    where = _written(before)
    if isinstance(step, str) and not step.isdigit():
        raise UsageError(
            f"{where} is a list, {step!r} is not an index", hint=f"write {where}.0 for its first entry"
        )
    index = int(step)
    if index > len(holder):
        raise UsageError(
            f"{where} has {len(holder)} entries, there is no entry {index}",
            hint=f"write {where}.{len(holder)} to add one",
        )
    return index


def _no_container(holder: Any, step: str | int, before: list[str | int]) -> UsageError:
    return UsageError(
        f"{_written(before)} is {shown(holder)}, there is nothing named {step!r} in it",
        hint="leave that part of the path out, or set the whole value",
    )


def _written(steps: list[str | int]) -> str:
    return ".".join(map(str, steps)) or "the job"
