"""`opai output`: the logs of a task byte for byte, and sentences for what is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openpaisdk.errors import NotFoundError, UsageError
from support.fake_pai import FakePAI, engine_for

LOGS = "/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"


class LoggingPAI(FakePAI):
    """One that has logs; `streams` are their bytes by name."""

    def __init__(self, **streams: bytes) -> None:
        super().__init__()
        self.streams = streams

    def __call__(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Any:
        _, found, stream = url.partition(LOGS + "/")
        if not found:
            return super().__call__(method, url, headers, body)
        contents = self.streams[stream]
        if headers.get("range") and not contents:
            return 416, {"content-range": "bytes */0"}, b""
        return 200, {"content-type": "text/plain"}, contents

    def _of_job(self, method: str, job: Any, rest: str, query: Any, body: bytes | None) -> Any:
        if rest != LOGS:
            return super()._of_job(method, job, rest, query, body)
        base = f"/rest-server/api/v2/jobs/ann~{job['name']}{LOGS}"
        return 200, {"locations": [{"name": name, "uri": f"{base}/{name}"} for name in self.streams]}


@pytest.fixture
def pai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoggingPAI:
    monkeypatch.chdir(tmp_path)
    found = LoggingPAI(stdout=b"caf\xe9\nlast", stderr=b"")
    found.add("one", state="SUCCEEDED", exit=0)
    return found


def test_peek_at_the_end_of_an_empty_log(pai: LoggingPAI) -> None:
    shown = engine_for(pai).process(["output", "peek", "-j", "one", "--tail", "1"])
    assert shown == {"job": "one", "stdout": "last", "stderr": ""}


def test_save_writes_the_bytes_and_replaces_a_file(pai: LoggingPAI, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("something else")
    shown = engine_for(pai).process(["output", "peek", "-j", "one", "--save", "log"])
    assert (tmp_path / "log").read_bytes() == b"caf\xe9\nlast"
    assert shown["stdout"] == "caf\ufffd\nlast"


def test_save_to_a_folder_gets_a_fitting_sentence(pai: LoggingPAI, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with pytest.raises(UsageError, match="--save logs: it is a folder") as caught:
        engine_for(pai).process(["output", "peek", "-j", "one", "--save", "logs"])
    assert "logs/log.txt" in str(caught.value.hint)


def test_a_task_that_is_not_there_names_those_that_are(pai: LoggingPAI) -> None:
    with pytest.raises(NotFoundError, match=r"'one' has no task worker/9$") as caught:
        engine_for(pai).process(["output", "peek", "-j", "one", "-t", "worker/9"])
    assert caught.value.hint == "name one with -t: worker/0"
