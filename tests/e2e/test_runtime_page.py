"""docs/runtime.md is run: its programs are written as they stand, its commands typed, outputs compared."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.opai import Opai
from support.servers import end_processes_of

PAGE = Path(__file__).parents[2] / "docs" / "runtime.md"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opai]:
    """Somebody with `opai` and `python` on the path."""
    work = tmp_path / "work"
    tools = tmp_path / "bin"
    for folder in (work, tools):
        folder.mkdir()
    (tools / "opai").write_text(f'#!/bin/sh\nexec {sys.executable} -m openpaisdk.cli "$@"\n')
    (tools / "opai").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{Path(sys.executable).parent}", prepend=":")
    yield Opai(tmp_path, work)
    end_processes_of(tmp_path)


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def typed(person: Opai, command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        env=person.environment(),
        cwd=person.cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.timeout(180)
def test_every_example_does_what_it_says(person: Opai) -> None:
    ran = 0
    for kind, text in blocks():
        if kind == "python":
            name = text.splitlines()[0].removeprefix("# ")
            assert name.endswith(".py")
            (person.cwd / name).write_text(text)
            continue
        assert kind == "console"
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            if command.startswith("opai job signal"):
                wait_for_log(person, "asked", "from step 2")
                ran += 1
                typed(person, command)
                wait_for_log(person, "asked", "published 3")
                continue
            printed = typed(person, command)
            if not command.startswith("opai output download"):
                assert printed == expected, command
            ran += 1
    assert ran == 12
    assert (person.cwd / "result" / "models" / "a.pt").read_text() == "weights\n"


def wait_for_log(person: Opai, job: str, text: str) -> None:
    for _ in range(100):
        if text in person("job", "logs", job).stdout:
            return
    raise AssertionError(f"{job} never printed {text!r}")


def test_it_tells_every_event() -> None:
    from openpaisdk.runtime import EVENTS

    text = PAGE.read_text()
    assert all(f"`{event}`" in text or f'"{event}"' in text for event in EVENTS)
