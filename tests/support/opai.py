"""Runs the real `opai` command in a home of its own, as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Opai:
    """`opai("job", "list")` runs the command to its end; every call is remembered by noun and verb."""

    def __init__(self, home: Path, cwd: Path | None = None) -> None:
        self.home = home
        self.cwd = cwd or home
        self.called: set[tuple[str, str]] = set()

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPAI_", "PAI_"))}
        return {**kept, "HOME": str(self.home), "OPENPAI_HOME": str(self.home / ".openpai"), "COLUMNS": "120"}

    def __call__(
        self, *words: str, stdin: str = "", code: int | None = 0, timeout: float = 90
    ) -> subprocess.CompletedProcess[str]:
        """Fails with everything the command said when the exit code is not the expected one (None: any)."""
        self.called.add((words[0], words[1] if len(words) > 1 else ""))
        done = subprocess.run(
            [sys.executable, "-m", "openpaisdk.cli", *words],
            env=self.environment(),
            cwd=self.cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if code is not None and done.returncode != code:
            raise AssertionError(
                f"opai {' '.join(words)} ended with {done.returncode}, not {code}\n"
                f"stdout: {done.stdout[-2000:]}\nstderr: {done.stderr[-2000:]}"
            )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *words: str, **options: Any) -> Any:
        return json.loads(self(*words, "-o", "json", **options).stdout)
