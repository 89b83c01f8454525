"""The training example as a person runs it: fails once, goes on from its checkpoint, its model comes back."""

from __future__ import annotations

import json
import pickle
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.opai import Opai
from support.servers import end_processes_of

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture
def opai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opai]:
    # As in an activated virtual environment, whose Python is the job's.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    work = tmp_path / "digits"
    shutil.copytree(EXAMPLE, work)
    yield Opai(tmp_path, work)
    end_processes_of(tmp_path)


def commands() -> list[list[str]]:
    """The commands of the example's own page."""
    lines = (EXAMPLE / "README.md").read_text().splitlines()
    return [shlex.split(line[2:])[1:] for line in lines if line.startswith("$ opai")]


def test_it_fails_resumes_and_its_model_comes_back(opai: Opai) -> None:
    submit, download = commands()
    done = subprocess.run(
        [sys.executable, "-m", "openpaisdk.cli", *submit],
        env=opai.environment(),
        cwd=opai.cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    printed = done.stdout.splitlines()
    epochs = [line.split()[1] for line in printed if line.startswith("epoch")]
    assert epochs == ["1", "2", "3", "4", "5", "6"]  # none twice: the second attempt went on
    assert "attempt 0 failed: failing on purpose after epoch 3" in printed
    assert "going on from the checkpoint of epoch 3" in printed
    assert opai.json("job", "list", "digits")["jobStatus"]["retries"] == 1
    opai(*download)
    score = json.loads((opai.cwd / "result" / "models" / "score.json").read_text())
    assert score["accuracy"] > 0.9
    model = pickle.loads((opai.cwd / "result" / "models" / "digits.pkl").read_bytes())
    assert model.n_features_in_ == 64


def test_a_job_stopped_in_mid_training_has_its_annotated_files(opai: Opai) -> None:
    words = [
        "job",
        "sub",
        "-j",
        "endless",
        "--save",
        "*.pkl",
        "--",
        "python",
        "train.py",
        "--epochs",
        "1000000",
    ]
    opai(*words)
    for line in range(200):
        if "epoch 2" in opai("job", "logs", "endless").stdout:
            break
        assert line < 199
    opai("job", "stop", "endless")
    opai("job", "wait", "endless", code=11)
    opai("output", "download", "-j", "endless", "--to", "result")
    epoch, model = pickle.loads((opai.cwd / "result" / "checkpoint.pkl").read_bytes())
    assert epoch >= 2 and model.n_features_in_ == 64
