"""Files that are made for a job and sent among those that are found."""

from __future__ import annotations

import json
from pathlib import Path

from openpaisdk.workspace.shipping import plan_source


def names(manifest: bytes) -> list[str]:
    return [entry["path"] for entry in json.loads(manifest)]


def test_made_files_stand_in_for_those_found(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "nb.ipynb").write_text("old")
    (here / "data.csv").write_text("1,2")
    made = tmp_path / "made"
    made.write_text("new")
    alone = plan_source([], cwd=str(here), instead={"nb.ipynb": str(made)})
    assert alone is not None and names(alone.manifest) == ["nb.ipynb"] and alone.bytes == 3
    whole = plan_source(["."], cwd=str(here), instead={"nb.ipynb": str(made), "nb.py": str(made)})
    assert whole is not None and names(whole.manifest) == ["data.csv", "nb.ipynb", "nb.py"]
    assert {file.path for file in whole.contents.values()} == {str(made), str(here / "data.csv")}


def test_made_files_go_even_from_a_home_folder(empty_home: Path) -> None:
    (empty_home / "made").write_text("new")
    plan = plan_source([], cwd=str(empty_home), instead={"nb.ipynb": str(empty_home / "made")})
    assert plan is not None and plan.files == 1
    assert plan_source([], cwd=str(empty_home)) is None
