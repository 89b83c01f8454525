"""Installs the published OpenPAI client for Node.js into a cache folder, once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PACKAGE = "@microsoft/openpai-js-sdk"
VERSION = "0.1.5"


def install_openpai_js(folder: Path) -> Path:
    """The `node_modules` folder with the client; without a network it skips, and fails where CI is set."""
    modules = folder / "node_modules"
    if (modules / PACKAGE / "package.json").exists():
        return modules
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run([*command, f"{PACKAGE}@{VERSION}"], capture_output=True, text=True, timeout=110)
    if done.returncode:
        message = f"npm cannot install {PACKAGE}@{VERSION}: {done.stderr.strip()[-300:]}"
        if os.environ.get("CI"):
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return modules
