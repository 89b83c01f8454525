"""What storage commands say: the progress line in little room, what was deleted, where to look."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.cli.main import main
from openpaisdk.commands.context import Context
from openpaisdk.commands.transfers import progress_line, shown_progress
from openpaisdk.engine import Engine
from openpaisdk.errors import NotFoundError
from openpaisdk.storage import Progress


def opai(*words: str) -> Any:
    return Engine().process(list(words))


def halfway() -> Progress:
    progress = Progress()
    progress.files, progress.bytes = 1234, 40_000_000_000
    progress.add(12_300_000_000, 432)
    return progress


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (100, "[######--------------]  31%  432/1234 files  12.3 GB of 40 GB · 123 MB/s · 3 min 45 s left"),
        (80, "[###-------]  31%  432/1234 files  12.3 GB of 40 GB · 123 MB/s · 3 min 45 s left"),
        (50, "31%  12.3 GB of 40 GB · 123 MB/s · 3 min 45 s left"),
        (30, "31% · 3 min 45 s left"),
        (3, "31%"),
    ],
)
def test_the_bar_gives_way_to_the_figures(width: int, line: str) -> None:
    assert progress_line(halfway(), 100.0, width) == line


@pytest.mark.parametrize("width", [80, 50, 30])
def test_the_line_fits_the_terminal_and_is_never_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    moments = iter([0.0, 100.0])
    monkeypatch.setattr("openpaisdk.commands.transfers.time.monotonic", lambda: next(moments, 200.0))
    talk = io.StringIO()
    progress = shown_progress(Context(talk=talk, terminal=True))
    progress.files, progress.bytes = 1234, 40_000_000_000
    progress.add(12_300_000_000, 432)
    shown = talk.getvalue().removeprefix("\r\x1b[2K")
    assert len(shown) < width and shown.endswith("3 min 45 s left")


def test_what_can_be_deleted_is_and_the_rest_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "z"):
        (here / name).write_text(name)
        opai("storage", "upload", name, name)
    assert main(["storage", "delete", "a", "nope", "/", "sub/nada", "z"]) == NotFoundError.exit_code
    said = capsys.readouterr().err
    assert opai("storage", "list") == []
    assert f"{here.name}/a deleted" in said and f"{here.name}/z deleted" in said
    assert "there is no nope" in said and "there is no sub/nada" in said and "never deleted" in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["list", "nope"], "`opai storage list` shows what there is"),
        (["status", "sub/nope"], "`opai storage list sub` shows what there is"),
        (["download", "/user/ann/no pe/x"], "`opai storage list '/user/ann/no pe'` shows what there is"),
        (["delete", "sub/nope/"], "`opai storage list sub` shows what there is"),
        (["list", "file:///nope"], "`opai storage list file:///` shows what there is"),
        (["upload", "data/*.txt", "x"], "the pattern fits nothing here; name one file or folder"),
        (["upload", "nope", "x"], "check the name, and the folder you are in"),
        (["list"], "the workspace is made with the first `opai storage upload`"),
    ],
)
def test_what_is_not_there_comes_with_where_to_look(here: Path, words: list[str], hint: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        opai("storage", *words)
    assert caught.value.hint == hint
