"""Code inside the job text."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from openpaisdk.errors import UsageError
from openpaisdk.workspace import inline_command


def test_the_command_makes_the_files_where_it_runs(tmp_path: Path) -> None:
    code, work = tmp_path / "code", tmp_path / "work"
    (code / "lib").mkdir(parents=True)
    work.mkdir()
    (code / "run.sh").write_text("echo '<% $x %>'\n")
    (code / "run.sh").chmod(0o755)
    (code / "lib/ü.py").write_bytes(os.urandom(5000))
    (code / "same").symlink_to("run.sh")
    text = inline_command(cwd=str(code))
    assert text is not None
    assert "<%" not in text
    assert text == inline_command(cwd=str(code))
    subprocess.run(["/bin/sh", "-e", "-c", text], cwd=work, check=True)
    assert (work / "lib/ü.py").read_bytes() == (code / "lib/ü.py").read_bytes()
    assert os.access(work / "run.sh", os.X_OK)
    assert (work / "same").readlink() == Path("run.sh")


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(90_000))
    with pytest.raises(UsageError, match="80,000 fit into a job text"):
        inline_command(cwd=str(tmp_path))


def test_nothing_is_sent_from_home_or_an_empty_folder(empty_home: Path, tmp_path: Path) -> None:
    assert inline_command(cwd=str(empty_home)) is None
    assert inline_command(cwd=str(tmp_path)) is None
