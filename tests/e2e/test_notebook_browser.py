"""Notebooks as people meet them: in a real Jupyter, in a real browser, on the embedded cluster."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.jupyter import (
    browser,
    cell_editor,
    environment,
    jupyter_server,
    output_of,
    printed,
    wait_for_kernel,
    write_notebook,
)
from support.servers import end_processes_of

pytestmark = [pytest.mark.slow, pytest.mark.real("chromium"), pytest.mark.timeout(300)]

SUBMIT = """\
from openpaisdk import __install__
from openpaisdk.core import in_job_container
from openpaisdk.notebook import submit_notebook

if not in_job_container():
    link = submit_notebook(pip_requirements=[__install__], name="from-browser")
    print(link)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "person"
    (found / "work").mkdir(parents=True)
    yield found
    end_processes_of(found)


def opai(home: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "openpaisdk.cli", *words],
        env=environment(home),
        cwd=home / "work",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"opai {' '.join(words)}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_cell_submits_the_notebook_it_is_in(home: Path) -> None:
    write_notebook(home / "work" / "train.ipynb", "answer = 1", SUBMIT, "print('the answer is', answer)")
    with jupyter_server(home, home / "work") as address, browser() as page:
        page.goto(address.format("train.ipynb"))
        wait_for_kernel(page)
        # Not saved by the person: submitting has to see to it.
        cell_editor(page, 0).click()
        page.keyboard.press("Control+A")
        page.keyboard.type("answer = 42")
        cell_editor(page, 1).click()
        page.keyboard.press("Shift+Enter")
        link = output_of(page, 1, "http")
        page.screenshot(path=str(home / "submitted.png"))
    assert re.match(r"http://127\.0\.0\.1:\d+/job-detail\.html\?username=\w+&jobName=from-browser", link), (
        link
    )
    opai(home, "job", "wait", "from-browser")
    opai(home, "output", "download", "-j", "from-browser", "train.ipynb", "train.html", "--to", "back")
    assert "the answer is 42" in printed(home / "work" / "back" / "train.ipynb")
    assert "the answer is 42" in (home / "work" / "back" / "train.html").read_text()


def test_a_browser_is_connected_to_the_jupyter_in_a_job(home: Path) -> None:
    write_notebook(
        home / "work" / "look.ipynb", "from openpai.runtime import Runtime", "Runtime().place.kind"
    )
    opened = home / "opened"
    opener = home / "open-browser"
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    opener.chmod(0o755)
    opai(home, "job", "notebook", "look.ipynb", "--mode", "interactive", "-j", "look")
    connecting = subprocess.Popen(
        [sys.executable, "-m", "openpaisdk.cli", "job", "connect", "look"],
        env=environment(home, BROWSER=str(opener)),
        cwd=home / "work",
        stderr=subprocess.PIPE,
        text=True,
    )
    assert connecting.stderr is not None
    try:
        said = connecting.stderr.readline()
        assert said.startswith("look is at http://127.0.0.1:"), said + connecting.stderr.read()
        assert connecting.stderr.readline().startswith("Ctrl-C ends the connection")
        token = said.strip().partition("token=")[2]
        while not opened.exists():
            assert connecting.poll() is None
        page_file = opened.read_text().strip()
        assert page_file.startswith("file://") and token not in page_file
        assert stat.S_IMODE(Path(page_file.removeprefix("file://")).stat().st_mode) == 0o600
        with browser() as page:
            page.goto(page_file)
            page.wait_for_url("**/lab/tree/look.ipynb*")
            wait_for_kernel(page)
            cell_editor(page, 0).click()
            page.keyboard.press("Shift+Enter")
            page.keyboard.press("Shift+Enter")
            assert output_of(page, 1, "interactive") == "'interactive'"
            page.screenshot(path=str(home / "connected.png"))
        connecting.send_signal(signal.SIGINT)
        assert "look goes on" in connecting.stderr.read()
        assert connecting.wait(20) == 0
    finally:
        connecting.kill()
        connecting.wait()
        connecting.stderr.close()
    assert not Path(page_file.removeprefix("file://")).exists()
    log = opai(home, "job", "logs", "look", "-o", "json")
    assert "Jupyter Server" in log and token not in log
    opai(home, "job", "stop", "look")
