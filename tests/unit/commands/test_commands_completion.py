"""What the shells are offered, and that a real bash really offers it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk.cli.completion import complete
from openpaisdk.commands import GROUPS, TABLE
from openpaisdk.engine import Engine
from support.fake_pai import FakePAI


def offered(line: str, engine: Engine | None = None) -> list[str]:
    words = ["opai", *line.split(" ")]
    return complete([str(len(words) - 1), *words], engine)


def test_groups_and_verbs() -> None:
    assert offered("") == sorted(GROUPS)
    assert offered("jo") == ["job"]
    assert offered("job ") == sorted(TABLE["job"])
    assert offered("job st") == ["status", "stop"]
    assert offered("-o json job wa") == ["wait"]
    assert offered("nonsense ") == []


def test_options_and_their_values() -> None:
    assert offered("job sub --fo") == ["--follow"]
    assert offered("job list --state fa") == ["failed"]
    assert offered("job list -o ") == ["json", "name", "table", "yaml"]
    assert offered("-o j") == ["json"]
    assert offered("job list --limit ") == []
    assert offered("job -") != []


def test_the_command_of_a_job_is_left_to_the_shell() -> None:
    assert offered("job sub python tr") == []
    assert offered("job sub -- ") == []
    assert offered("job exec one -- ") == []


@pytest.mark.usefixtures("known_token")
def test_names_of_jobs_clusters_and_defaults(engine: Engine, pai: FakePAI) -> None:
    pai.add("bert-1")
    pai.add("bert-2")
    pai.add("gpt")
    assert offered("job stop be", engine) == ["bert-1", "bert-2"]
    assert offered("job list bert-1 ", engine) == ["config", "ssh"]
    assert offered("job stop bert-1 g", engine) == ["gpt"]
    engine.process(["cluster", "add", "lab", "--pai-uri", "http://x", "--no-check"])
    assert offered("job list -a ") == ["lab", "local"]
    assert offered("cluster remove l") == ["lab", "local"]
    assert offered("default add ima") == ["image="]


def test_nothing_is_started_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("job stop ") == []
    assert complete([]) == []
    assert complete(["x"]) == []
    monkeypatch.setenv("OPAI_PAI_URI", "not an address")
    assert offered("job stop ") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_really_completes(tmp_path: Path) -> None:
    program = tmp_path / "opai"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m openpaisdk.cli "$@"\n')
    program.chmod(0o755)
    script = f"""
        PATH={tmp_path}:$PATH
        eval "$(opai completion bash)"
        ask() {{
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _opai_complete; echo "${{COMPREPLY[@]}}"
        }}
        complete -p opai
        ask opai job val
        ask opai job list --state run
        ask opai cluster re
    """
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "complete -o default -F _opai_complete opai",
        "validate",
        "running",
        "remove resources",
    ]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_scripts_are_accepted_by_their_shell(shell: str) -> None:
    script = Engine().process(["completion", shell])
    assert "opai __complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
