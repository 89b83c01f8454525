"""Default values of options: those of the project over the user's, below flags and environment."""

# pathlib costs a third of a bare interpreter start, and every command reads these files.
# ruff: noqa: PTH100, PTH109, PTH111, PTH113, PTH118, PTH120

from __future__ import annotations

import os

from openpaisdk.config.files import home_path, read_json, update_json
from openpaisdk.errors import ConfigError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# Name -> (kind, built-in value, what it is for).
KNOWN_DEFAULTS: dict[str, tuple[str, Any, str]] = {
    "cluster-alias": ("text", None, "cluster to use where -a is left out"),
    "image": ("text", None, "container image of a job that names none"),
    "vc": ("text", None, "virtual cluster to submit to"),
    "workspace": ("text", None, "storage folder for code and outputs"),
    "gpu": ("count", 0, "GPUs of each task"),
    "cpu": ("count", 1, "CPU cores of each task"),
    "mem": ("memory", None, "memory of each task, in MB or as 8GB"),
    "instances": ("count", 1, "tasks of a role"),
    "task-role": ("text", "worker", "name of the task role of a one-line job"),
    "priority": ("text", None, "priority class: oppo, test or prod"),
    "retries": ("count", 0, "times a failed job is tried again"),
    "timeout": ("seconds", 30.0, "seconds to wait for an answer of the server"),
    "output": ("text", None, "how results are shown: table, json, yaml or name"),
}

_MEMORY_UNITS = {
    "": 1,
    "m": 1,
    "mb": 1,
    "mib": 1,
    "g": 1024,
    "gb": 1024,
    "gib": 1024,
    "t": 1048576,
    "tb": 1048576,
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    from difflib import get_close_matches

    lowered = {item.lower(): item for item in known}
    found = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def known_default(name: str) -> str:
    """The name as it is spelled here (`cluster_alias` is `cluster-alias`); an unknown one is refused."""
    spelled = name.strip().lower().replace("_", "-")
    if spelled in KNOWN_DEFAULTS:
        return spelled
    meant = nearest(spelled, KNOWN_DEFAULTS)
    hint = f"did you mean `{meant}`?" if meant else "known are " + ", ".join(sorted(KNOWN_DEFAULTS))
    raise UsageError(f"there is no default called {name!r}", hint=hint)


def megabytes(text: str | int) -> int:
    """Memory as whole MB, from `8192`, `8192MB`, `8GB` or `8g`."""
    shown = str(text).strip().lower()
    digits = shown.rstrip("abcdefghijklmnopqrstuvwxyz ")
    factor = _MEMORY_UNITS.get(shown[len(digits) :].strip())
    try:
        amount = int(float(digits) * factor) if factor else 0
    except (ValueError, OverflowError):
        amount = 0
    if amount < 1:
        raise UsageError(f"memory {text!r} is not an amount", hint="write it in MB (8192) or as 8GB")
    return amount


def _typed(name: str, value: Any, origin: str) -> Any:
    kind = KNOWN_DEFAULTS[name][0]
    try:
        if kind == "memory":
            return megabytes(value)
        if kind == "text":
            if isinstance(value, str) and value.strip():
                return value
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
            number = float(value)
            if kind == "seconds" and 0 < number < 1e9:
                return number
            if kind == "count" and number >= 0 and number == int(number):
                return int(number)
    except (ValueError, OverflowError, UsageError):
        pass
    wanted = {
        "memory": "an amount of memory such as 8GB",
        "count": "a whole number",
        "seconds": "a number of seconds",
    }
    raise ConfigError(
        f"{origin}: {name}: expected {wanted.get(kind, 'some text')}, got {value!r}",
        hint=f"set it again with `opai default add {name}=VALUE`",
    )


def user_file() -> str:
    """The user's own defaults."""
    return home_path("defaults.json")


def project_file(start: str | None = None) -> str | None:
    """The nearest `.openpai/defaults.json` upward from the working directory, never the user's own."""
    try:
        folder = os.path.abspath(start or os.getcwd())
    except OSError:
        return None
    users = {os.path.realpath(user_file()), os.path.realpath(os.path.expanduser("~/.openpai/defaults.json"))}
    while True:
        found = os.path.join(folder, ".openpai", "defaults.json")
        if os.path.isfile(found) and os.path.realpath(found) not in users:
            return found
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _read(path: str | None) -> dict[str, Any]:
    found = read_json(path) if path else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected an object with names and values, got {type(found).__name__}")
    return found


def _environment_name(name: str) -> str:
    return "OPAI_" + name.upper().replace("-", "_")


def setting(name: str, flag: Any = None) -> Any:
    """The value in force: flag > environment `OPAI_<NAME>` > project > user > built-in."""
    name = known_default(name)
    if flag is not None:
        return flag
    variable = _environment_name(name)
    if os.environ.get(variable):
        return _typed(name, os.environ[variable], f"the environment variable {variable}")
    for path in (project_file(), user_file()):
        value = _read(path).get(name)
        if value is not None:
            return _typed(name, value, str(path))
    return KNOWN_DEFAULTS[name][1]


def list_defaults() -> list[dict[str, Any]]:
    """Every default that is set somewhere, with the value in force and where it comes from."""
    project, user = project_file(), user_file()
    sources = [(str(project), _read(project)), (user, _read(user))]
    rows = []
    for name in KNOWN_DEFAULTS:
        variable = _environment_name(name)
        found = [(variable, os.environ[variable])] if os.environ.get(variable) else []
        found += [(path, values[name]) for path, values in sources if values.get(name) is not None]
        if found:
            origin, value = found[0]
            rows.append({"name": name, "value": _typed(name, value, origin), "source": origin})
    return rows


def _target(user_wide: bool) -> str:
    if user_wide:
        return user_file()
    return project_file() or os.path.join(os.getcwd(), ".openpai", "defaults.json")


def add_defaults(pairs: Mapping[str, Any] | Iterable[str], user_wide: bool = False) -> dict[str, Any]:
    """Set defaults from a mapping or from `name=value` texts, all or none; returns what was set."""
    items: list[tuple[str, Any]] = []
    if hasattr(pairs, "items"):
        items = list(pairs.items())
    else:
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals:
                raise UsageError(f"{pair!r} sets nothing", hint=f"write it as {name}=VALUE")
            items.append((name, value))
    changes: dict[str, Any] = {}
    for name, value in items:
        spelled = known_default(name)
        changes[spelled] = _typed(spelled, value, "the command line")
    path = _target(user_wide)
    update_json(path, lambda found: {**_object(found, path), **changes})
    return changes


def remove_default(name: str, user_wide: bool = False) -> bool:
    """Remove a default; whether it was there."""
    spelled = known_default(name)
    path = _target(user_wide)
    if spelled not in _read(path):
        return False

    def without(found: Any) -> dict[str, Any]:
        return {key: value for key, value in _object(found, path).items() if key != spelled}

    update_json(path, without)
    return True


def _object(found: Any, path: str) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected an object with names and values, got {type(found).__name__}")
    return found
