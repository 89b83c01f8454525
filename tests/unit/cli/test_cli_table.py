"""Tables on narrow terminals: what matters stays, nothing runs over the edge, nothing steers the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openpaisdk.cli.table import BLOCK, cell_width, shorten, write_table
from openpaisdk.commands.result import Column

COLUMNS = (
    Column("NAME", "name"),
    Column("STATE", "state", state=True),
    Column("VC", "vc", spare=2),
    Column("GPUS", "gpus", right=True, spare=1),
    Column("EXIT", "exit", right=True),
)
ROW = {"name": "sweep-" + "x" * 90 + "-lr-0-01", "state": "running", "vc": "default", "gpus": 8, "exit": -210}


def lines(rows: list[dict[str, Any]], width: int | None, colour: bool = False) -> list[str]:
    stream = io.StringIO()
    write_table(iter(rows), COLUMNS, stream, width=width, colour=colour)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_long_name_leaves_room_for_the_state(width: int) -> None:
    head, row = lines([ROW], width)
    assert max(len(head), len(row)) <= width
    assert "running" in row
    assert "-210" in row


def test_the_end_of_a_name_is_kept() -> None:
    assert lines([ROW], 60)[1].split()[0].endswith("lr-0-01")


def test_spare_columns_go_before_names_become_unreadable() -> None:
    assert lines([ROW], 60)[0].split() == ["NAME", "STATE", "VC", "GPUS", "EXIT"]
    assert lines([ROW], 46)[0].split() == ["NAME", "STATE", "GPUS", "EXIT"]
    assert lines([ROW], 41)[0].split() == ["NAME", "STATE", "EXIT"]


def test_columns_stay_where_they_are_after_the_first_block() -> None:
    rows = [{**ROW, "name": "short"}] * BLOCK + [ROW]
    found = lines(rows, 60)
    assert len({line.index("running") for line in found[1:]}) == 1
    assert all(len(line) <= 60 for line in found)


def test_nothing_is_shortened_where_nobody_looks() -> None:
    assert ROW["name"] in lines([ROW], None)[1]


def test_colours_do_not_disturb_the_columns() -> None:
    plain, coloured = lines([ROW], 60), lines([ROW], 60, colour=True)
    assert coloured[0] == f"\x1b[1m{plain[0]}\x1b[0m"
    assert coloured[1].replace("\x1b[36m", "").replace("\x1b[0m", "") == plain[1]


def test_a_name_cannot_steer_the_terminal_or_tear_the_table() -> None:
    found = lines([{**ROW, "name": "a\x1b[2Jb\nc"}], 60)
    assert len(found) == 2
    assert found[1].startswith("a?[2Jb?c")


def test_wide_letters_take_two_columns() -> None:
    found = lines([{**ROW, "name": "日本"}, {**ROW, "name": "abcd"}], 60)
    assert cell_width("日本") == 4
    assert found[1].index("running") + 2 == found[2].index("running")


def test_full_stops_where_the_terminal_lacks_the_ellipsis() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    write_table(iter([ROW]), COLUMNS, stream, width=60)
    stream.flush()
    assert b"..." in stream.buffer.getvalue()  # type: ignore[attr-defined]


@given(st.text(max_size=60), st.integers(3, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    found = shorten(text, width, "…")
    assert cell_width(found) <= width
    assert found == text or "…" in found
