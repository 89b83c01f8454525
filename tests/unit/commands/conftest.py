"""Engines that talk to a cluster in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from openpaisdk.engine import Engine
from support.fake_pai import ALL_EXTENSIONS, FakePAI, engine_for


@pytest.fixture
def pai() -> FakePAI:
    """A server with our extensions."""
    return FakePAI(extensions=ALL_EXTENSIONS)


@pytest.fixture
def engine(pai: FakePAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.chdir(tmp_path)
    return engine_for(pai)


@pytest.fixture
def genuine() -> FakePAI:
    """A genuine OpenPAI: no extensions."""
    return FakePAI()


@pytest.fixture
def genuine_engine(genuine: FakePAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.chdir(tmp_path)
    return engine_for(genuine)


@pytest.fixture
def known_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token in the environment, so that `cluster add` has nothing to ask for."""
    monkeypatch.setenv("OPAI_TOKEN", "t")
