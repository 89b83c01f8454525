"""Every `opai` line in the documents is a command that exists, with options that it takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from openpaisdk.commands import TABLE
from openpaisdk.commands.parsing import HelpShown, build_parser

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GLOBAL = ("--version", "-h", "--help")


def command_lines(document: Path) -> list[tuple[int, str]]:
    """(line number, words after `opai`) of every shell line inside a fenced block."""
    found, fenced = [], False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced and line[3:].strip() in ("sh", "console", "bash")
            continue
        text = line[2:] if line.startswith("$ ") else line
        for part in re.findall(r"\$\((opai [^)]*)\)", text) or [text]:
            if fenced and part.startswith("opai "):
                found.append((number, part.partition(" #")[0][5:]))
    return found


CASES = [
    pytest.param(words, id=f"{document.name}:{number}")
    for document in DOCUMENTS
    if document.name != "cli.md"  # generated from the commands, and checked by scripts/check
    for number, words in command_lines(document)
]


@pytest.mark.parametrize("words", CASES)
def test_the_command_exists(words: str) -> None:
    parts = shlex.split(words)
    if parts[0] in GLOBAL:
        return
    group, verb, rest = parts[0], parts[1], parts[2:]
    assert verb in TABLE.get(group, {}), f"opai {group} {verb}"
    parser, _ = build_parser(group, verb)
    try:
        parser.parse(rest)
    except HelpShown:
        pass


def test_there_is_something_to_check() -> None:
    assert len(CASES) > 20


def test_links_lead_somewhere() -> None:
    broken = []
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            if not (document.parent / target).exists():
                broken.append(f"{document.name}: {target}")
    assert not broken
