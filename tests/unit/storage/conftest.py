"""A file server, and an empty folder of a person who uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.file_server import serving


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def here(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in {"PAI_URI": address, "USER": "ann", "TOKEN": "ann-token"}.items():
        monkeypatch.setenv(f"OPAI_{name}", value)
    # The file server alone knows no /api/v2/info, so it is told where the workspace is.
    monkeypatch.setenv("OPAI_WORKSPACE", f"/user/ann/{tmp_path.name}")
    return tmp_path
