"""A notebook on a genuine OpenPAI, which knows nothing of us: everything it needs is in the job's text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk.protocol import entry_script
from support.fake_pai import FakePAI, engine_for
from support.jupyter import write_notebook

SUBMIT = "from openpaisdk.notebook import submit_notebook\nprint(submit_notebook())"


def test_script_and_files_travel_in_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_notebook(Path("nb.ipynb"), SUBMIT, "import beside", "%%only batch\nprint(beside.NAME)")
    Path("beside.py").write_text("NAME = 'beside'\n")
    pai = FakePAI()
    engine_for(pai).process(
        ["job", "notebook", "nb.ipynb", "-j", "nb", "--mode", "script", "-s", "beside.py"]
    )
    Path("entry.sh").write_text(entry_script(pai.jobs["ann~nb"]["spec"], "notebook"))
    (tmp_path / "tmp").mkdir()
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "entry.sh"],
        env={
            "PATH": programs,
            "TMPDIR": str(tmp_path / "tmp"),
            "PAI_JOB_NAME": "ann~nb",
            "PAI_CONTAINER_ID": "c",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "None\nbeside\n"), done.stderr
