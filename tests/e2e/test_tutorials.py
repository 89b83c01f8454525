"""Every tutorial runs from top to bottom on an empty machine, and is stored with what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.servers import end_processes_of
from support.tutorials import SECRET, SIGNS, TUTORIALS, execute, shown

IDS = [path.stem for path in TUTORIALS]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", TUTORIALS, ids=IDS)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    try:
        text = shown(execute(path, tmp_path / "home"))
    finally:
        end_processes_of(tmp_path)
    stored = stored_text(path)
    # Some show on purpose what goes wrong: then it is stored so.
    unexpected = [sign for sign in SIGNS if sign in text and sign not in stored]
    assert not unexpected, text
    assert text.count("error: ") == stored.count("error: "), text


@pytest.mark.parametrize("path", TUTORIALS, ids=IDS)
def test_it_is_stored_executed_and_clean(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    executed = all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    assert executed, "scripts/tutorials executes and stores it"
    text = stored_text(path)
    assert not SECRET.search(text)
    assert "/tmp/" not in text and "/home/" not in text and "/root" not in text, text


def test_the_tutorials_are_all_there() -> None:
    assert [name.partition("-")[0] for name in IDS] == [str(number) for number in range(8)]


def stored_text(path: Path) -> str:
    import nbformat

    return shown(nbformat.read(path, as_version=4))
