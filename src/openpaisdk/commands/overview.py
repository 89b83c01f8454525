"""What can be said without a parser: where a command line's group and verb are, and the help of groups."""

from __future__ import annotations

import os

from openpaisdk.commands import GROUPS, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("table", "json", "yaml", "name")
GLOBAL_WITH_VALUE = ("-o", "--output", "-a", "--cluster-alias")


def terminal_width() -> int:
    """Columns of the terminal, or `COLUMNS`, or 80."""
    wished = os.environ.get("COLUMNS", "")
    if wished.isdigit() and int(wished) > 0:
        return int(wished)
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def colourful() -> bool:
    """Whether colours are wanted (https://no-color.org) and can be shown."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def split_words(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Options for every command that stand before the verb, the group and verb, and the rest as it is."""
    options: list[str] = []
    names: list[str] = []
    position = 0
    while position < len(words) and len(names) < 2:
        word = words[position]
        if word in GLOBAL_WITH_VALUE:
            options += words[position : position + 2]
            position += 2
            continue
        if word == "--debug" or word.startswith(("-o", "-a", "--output=", "--cluster-alias=")):
            options.append(word)
        elif word.startswith("-"):
            break
        else:
            names.append(word)
        position += 1
    return options, names, list(words[position:])


def main_help() -> str:
    """What `opai -h` shows; made from the table alone."""
    width = max(map(len, GROUPS))
    lines = [
        "usage: opai GROUP COMMAND [options]",
        "",
        "Run deep-learning jobs on this machine, a shared one, or an OpenPAI cluster.",
        "",
        "groups:",
        *(f"  {name:<{width}}  {text}" for name, text in GROUPS.items()),
        "",
        "begin with:",
        "  opai job sub --follow -- python train.py    run a command as a job and watch it",
        "  opai job list                               your jobs",
        "  opai job why JOB                            why it waits or failed",
        "",
        "on every command:",
        "  -a ALIAS                      which cluster; may be left out where only one is known",
        "  -o table|json|yaml|name       how the data is written to stdout",
        "  -h, --help                    help, on anything: opai job -h, opai job sub -h",
        "  --debug                       show the traceback of an error",
        "  --version                     show the version",
        "",
        "exit codes: 0 fine · 1 unexpected · 2 bad input · 3 not found · 4 taken, or in the wrong state",
        "  5 no access · 6 unreachable or too slow · 7 over quota · 8 server error",
        "  10 job failed · 11 job stopped · 130 interrupted",
    ]
    return "\n".join(lines) + "\n"


def group_help(group: str) -> str:
    """What a bare group shows."""
    verbs = TABLE[group]
    width = max(map(len, verbs))
    lines = [
        f"usage: opai {group} COMMAND [options]",
        "",
        GROUPS[group][0].upper() + GROUPS[group][1:] + ".",
        "",
        "commands:",
        *(f"  {verb:<{width}}  {summary}" for verb, (_, summary) in verbs.items()),
        "",
        f"opai {group} COMMAND -h says more.",
    ]
    return "\n".join(lines) + "\n"
