"""How words become a command: groups, verbs, options before and after them, help, and what makes no sense."""

from __future__ import annotations

import pytest

from openpaisdk.cli.main import main
from openpaisdk.commands import GROUPS, TABLE
from openpaisdk.commands.overview import split_words
from openpaisdk.engine import Engine
from openpaisdk.errors import UsageError
from openpaisdk.version import __version__
from support.fake_pai import FakePAI


def test_groups_and_table_agree() -> None:
    assert set(GROUPS) == set(TABLE)


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_help_of_all(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert all(group in shown for group in GROUPS)


@pytest.mark.parametrize("group", list(GROUPS))
def test_bare_group_shows_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([group]) == 0
    bare = capsys.readouterr().out
    assert main([group, "-h"]) == 0
    assert capsys.readouterr().out == bare
    assert all(verb in bare for verb in TABLE[group])


@pytest.mark.parametrize(
    ("group", "verb"), [(group, verb) for group, verbs in TABLE.items() for verb in verbs]
)
def test_help_of_every_command(group: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([group, verb, "-h"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: opai {group} {verb}")
    assert "-o, --output {table,json,yaml,name}" in shown
    assert "--cluster-alias" in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"opai {__version__}\n"
    assert Engine().process(["--version"]) == f"opai {__version__}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-o", "json", "job", "list"], (["-o", "json"], ["job", "list"], [])),
        (["job", "-o", "json", "list", "x"], (["-o", "json"], ["job", "list"], ["x"])),
        (["-ojson", "job", "list"], (["-ojson"], ["job", "list"], [])),
        (["--output=json", "-a", "x", "job", "list"], (["--output=json", "-a", "x"], ["job", "list"], [])),
        (["--debug", "job"], (["--debug"], ["job"], [])),
        (["job", "sub", "-o", "json", "ls"], ([], ["job", "sub"], ["-o", "json", "ls"])),
    ],
)
def test_options_before_the_verb(words: list[str], expected: object) -> None:
    assert split_words(words) == expected


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["jbo", "list"], "opai has no group `jbo`", "opai job"),
        (["job", "lst"], "opai job has no command `lst`", "opai job list"),
        (["job", "list", "--sate", "RUNNING"], "did you mean `--state`?", "opai job list -h"),
        (["job", "list", "a", "config", "b"], "`b` is one word too many", "-h"),
        (["job", "list", "-o", "xml"], "xml", "-h"),
        (["--loud", "job", "list"], "`--loud` makes no sense", "opai -h"),
        (["job", "status"], "JOB", "-h"),
        (["job", "sub"], "no command to run", "opai job sub"),
        (["job", "exec", "one"], "no command to run", "-- COMMAND"),
        (["job", "sub", "--gpu", "many", "ls"], "many", "-h"),
        (["job", "sub", "--env", "A", "ls"], "'A' says nothing", "NAME=VALUE"),
        (["job", "sub", "--port", "web=no", "ls"], "--port web", None),
        (["job", "sub", "--mem", "lots", "ls"], "lots", "8GB"),
        (["job", "list", "--state", "runing"], "no state 'RUNING'", "RUNNING"),
        (["job", "list", "--limit", "-1"], "--limit", None),
        (["job", "logs", "one", "--tail", "-1"], "--tail", None),
        (["default", "add", "imgae=x"], "imgae", "image"),
        (["default", "add", "image"], "image", "image=VALUE"),
    ],
)
def test_bad_words(engine: Engine, words: list[str], message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        engine.process(words)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


def test_words_of_the_command_are_its_own(engine: Engine, pai: FakePAI) -> None:
    for words in (
        ["job", "sub", "--gpu", "1", "python", "train.py", "--lr", "0.1", "-o", "json", "--debug"],
        ["job", "sub", "--gpu", "1", "--", "python", "train.py", "--lr", "0.1", "-o", "json", "--debug"],
    ):
        spec = engine.process([*words[:2], "--dry-run", *words[2:]])
        assert spec["taskRoles"]["worker"]["commands"] == ["python train.py --lr 0.1 -o json --debug"]
        assert spec["taskRoles"]["worker"]["resourcePerInstance"]["gpu"] == 1


def test_quoting_survives(engine: Engine) -> None:
    one = engine.process(["job", "sub", "--dry-run", "cd src && python train.py"])
    assert one["taskRoles"]["worker"]["commands"] == ["cd src && python train.py"]
    several = engine.process(["job", "sub", "--dry-run", "--", "echo", "it$me", "a b", "--", "x"])
    assert several["taskRoles"]["worker"]["commands"] == ["echo 'it$me' 'a b' -- x"]


def test_default_output_comes_from_the_defaults(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.process(["default", "add", "output=name"])
    assert main(["default", "list"], engine) == 0
    assert capsys.readouterr().out == "output\n"
    engine.process(["default", "add", "output=csv"])
    assert main(["default", "list"], engine) == 2
    assert "csv" in capsys.readouterr().err
