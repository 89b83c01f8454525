"""Code inside the job text."""

from __future__ import annotations

import base64
import io
import os
import tarfile
from pathlib import Path

import pytest

from openpaisdk.errors import UsageError
from openpaisdk.workspace import packed_code, plan_source


def planned(folder: Path):
    found = plan_source((), cwd=str(folder))
    assert found is not None
    return found


def unpacked(text: str, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_the_text_holds_all_files(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "empty").mkdir()
    (code / "run.sh").write_text("echo '<% $x %>'\n")
    (code / "run.sh").chmod(0o755)
    (code / "lib/ü.py").write_bytes(os.urandom(5000))
    (code / "same").symlink_to("run.sh")
    text, packing = packed_code(planned(code), room=20_000)
    assert packing == "gzip" and "<%" not in text
    assert text == packed_code(planned(code), room=20_000)[0]
    work = unpacked(text, tmp_path / "work")
    assert (work / "lib/ü.py").read_bytes() == (code / "lib/ü.py").read_bytes()
    assert os.access(work / "run.sh", os.X_OK)
    assert (work / "same").readlink() == Path("run.sh")
    assert (work / "empty").is_dir()


def test_what_hardly_fits_is_packed_tighter(tmp_path: Path) -> None:
    block = os.urandom(40_000)
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(block)  # too far apart for gzip to see that they are equal
    text, packing = packed_code(planned(tmp_path), room=80_000)
    assert packing == "xz"
    assert (unpacked(text, tmp_path / "work") / "2").read_bytes() == block


@pytest.mark.parametrize("size", [90_000, 3_000_000])
def test_what_does_not_fit_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(os.urandom(size))
    with pytest.raises(UsageError, match=r"1 files, .* needs .* which has room for 80 kB") as caught:
        packed_code(planned(tmp_path), room=80_000)
    assert "--workspace" in str(caught.value.hint)
