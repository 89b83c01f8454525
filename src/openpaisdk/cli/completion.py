"""Answers a shell that asks what could come next: `opai __complete INDEX opai job st`."""

from __future__ import annotations

from argparse import REMAINDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Iterable
    from typing import Any

    from openpaisdk.commands.parsing import CommandParser
    from openpaisdk.engine import Engine

MOST_JOBS = 200
_SEVERAL = ("+", "*")


def complete(words: list[str], engine: Engine | None = None) -> list[str]:
    """Candidates for the word at the index; none lets the shell complete file names. Never fails."""
    if not words or not words[0].isdigit():
        return []
    index = int(words[0])
    line = words[1:]
    current = line[index] if index < len(line) else ""
    try:
        found = list(_candidates(line[1:index], current, engine))
    except Exception:  # noqa: BLE001 - a shell in mid-typing has no use for an error
        return []
    return sorted({word for word in found if word.startswith(current)})


def _candidates(before: list[str], current: str, engine: Engine | None) -> Iterable[str]:
    from openpaisdk.commands import GROUPS, TABLE
    from openpaisdk.commands.overview import FORMATS, split_words

    _, names, rest = split_words(before)
    if len(names) < 2:
        if before and before[-1] in ("-o", "--output"):
            return FORMATS
        if before and before[-1] in ("-a", "--cluster-alias"):
            return _aliases()
        if current.startswith("-"):
            return ("-h", "--help", "-o", "-a", "--debug", *(() if names else ("--version",)))
        return TABLE.get(names[0], {}) if names else GROUPS
    from openpaisdk.commands.parsing import build_parser

    parser, _ = build_parser(names[0], names[1])
    return _inside(parser, names, rest, current, engine)


def _inside(
    parser: CommandParser, names: list[str], rest: list[str], current: str, engine: Engine | None
) -> Iterable[str]:
    options = parser._option_string_actions
    positionals = parser._get_positional_actions()
    seen = 0
    awaiting: Action | None = None
    for word in rest:
        if awaiting is not None:
            awaiting = None
        elif word == "--":
            return ()
        elif word in options:
            awaiting = options[word] if options[word].nargs != 0 else None
        elif seen < len(positionals) and positionals[seen].nargs == REMAINDER:
            return ()
        elif seen < len(positionals) and positionals[seen].nargs not in _SEVERAL:
            seen += 1
    if awaiting is not None:
        return _values(awaiting, names, rest, engine)
    if current.startswith("-"):
        return options
    return _values(positionals[seen], names, rest, engine) if seen < len(positionals) else ()


def _values(action: Action, names: list[str], rest: list[str], engine: Engine | None) -> Iterable[str]:
    if action.choices:
        return [str(choice) for choice in action.choices]
    if action.dest in ("cluster_alias", "alias"):
        return _aliases()
    if action.dest == "state":
        from openpaisdk.commands.job_list import STATES

        return (state.lower() for state in STATES)
    if action.dest in ("job", "jobs") and names[0] == "job":
        jobs: list[str] = _jobs(rest, engine)
        return jobs
    if names[0] == "default" and action.dest in ("pairs", "names"):
        from openpaisdk.config import KNOWN_DEFAULTS, list_defaults

        if action.dest == "pairs":
            return (f"{name}=" for name in KNOWN_DEFAULTS)
        return (row["name"] for row in list_defaults())
    return ()


def _aliases() -> Iterable[str]:
    from openpaisdk.config import load_clusters

    return {*load_clusters(), "local"}


def _jobs(rest: list[str], engine: Engine | None) -> Any:
    """Names of the newest jobs; a local cluster that is not running is not started for this."""
    from openpaisdk.engine import Engine

    alias = []
    for option in ("-a", "--cluster-alias"):
        if option in rest[:-1]:
            alias = ["-a", rest[rest.index(option) + 1]]
    if engine is None and not _reachable(alias[-1] if alias else None):
        return ()
    return (engine or Engine()).process(["job", "list", "--name", "--limit", str(MOST_JOBS), *alias])


def _reachable(alias: str | None) -> bool:
    from openpaisdk.config import get_cluster

    if not get_cluster(alias).is_local:
        return True
    from openpaisdk.local import status

    return bool(status().get("running"))
