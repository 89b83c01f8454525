"""The program around the commands: exit codes, streams, errors as sentences, what an import may load."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from openpaisdk.cli.main import main
from openpaisdk.cli.render import show
from openpaisdk.commands.context import Context
from openpaisdk.commands.result import Column, Result, View
from openpaisdk.engine import Engine
from support.fake_pai import FakePAI

OURS_FOR_HELP = {
    "openpaisdk",
    "openpaisdk.version",
    "openpaisdk.cli",
    "openpaisdk.cli.main",
    "openpaisdk.commands",
    "openpaisdk.commands.overview",
}
HEAVY = {
    "argparse",
    "json",
    "http.client",
    "yaml",
    "msgspec",
    "rich",
    "dataclasses",
    "inspect",
    "asyncio",
    "ssl",
}


def loaded_by(code: str) -> set[str]:
    program = [
        "import sys",
        "before = set(sys.modules)",
        code,
        "print('LOADED', *(set(sys.modules) - before), file=sys.stderr)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=True
    )
    return set(done.stderr.rpartition("LOADED")[2].split())


def test_import_loads_next_to_nothing() -> None:
    loaded = loaded_by("import openpaisdk")
    assert {name for name in loaded if name.startswith("openpaisdk")} == {"openpaisdk", "openpaisdk.version"}
    assert not loaded & HEAVY


def test_help_loads_no_noun() -> None:
    loaded = loaded_by("from openpaisdk.cli.main import main\nmain(['--help'])")
    assert {name for name in loaded if name.startswith("openpaisdk")} == OURS_FOR_HELP
    assert not loaded & HEAVY


def test_list_loads_only_what_it_needs() -> None:
    loaded = loaded_by("from openpaisdk.cli.main import main\nmain(['job', 'list', '-a', 'nobody'])")
    assert not loaded & (HEAVY - {"argparse", "json"})
    nouns = {name for name in loaded if name.startswith("openpaisdk.commands.job")}
    assert nouns == {"openpaisdk.commands.job_list"}


OURS_FOR_LIST = OURS_FOR_HELP | {
    "openpaisdk.cli.render",
    "openpaisdk.cli.table",
    "openpaisdk.commands.context",
    "openpaisdk.commands.job_list",
    "openpaisdk.commands.parsing",
    "openpaisdk.commands.result",
    "openpaisdk.commands.wording",
    "openpaisdk.config",
    "openpaisdk.config.clusters",
    "openpaisdk.config.defaults",
    "openpaisdk.config.files",
    "openpaisdk.core",
    "openpaisdk.engine",
    "openpaisdk.errors",
    "openpaisdk.rest",
    "openpaisdk.rest.attempts",
    "openpaisdk.rest.calls",
    "openpaisdk.rest.execution",
    "openpaisdk.rest.following",
    "openpaisdk.rest.groups",
    "openpaisdk.rest.info",
    "openpaisdk.rest.jobs",
    "openpaisdk.rest.logs",
    "openpaisdk.rest.storages",
    "openpaisdk.rest.submission",
    "openpaisdk.rest.tokens",
    "openpaisdk.rest.users",
    "openpaisdk.rest.virtual_clusters",
    "openpaisdk.rest.waiting",
    "openpaisdk.transport",
    "openpaisdk.transport.http1",
    "openpaisdk.transport.retry",
}
LISTING = """
from openpaisdk.cli.main import main
from openpaisdk.config import ClusterConfig
from openpaisdk.core import Cluster
from openpaisdk.engine import Engine
row = b'[{"name": "one", "username": "ann", "state": "RUNNING", "submissionTime": 1}]'
def answer(method, url, headers, body):
    return 200, {"content-type": "application/json"}, row
config = ClusterConfig("lab", "http://pai.example.org", user="ann", token="t")
main(["job", "list"], Engine(open_cluster=lambda alias: Cluster(config, transport=answer)))
"""


def test_a_whole_list_loads_only_what_it_needs() -> None:
    loaded = loaded_by(LISTING)
    assert not loaded & (HEAVY - {"argparse", "json"})
    assert {name for name in loaded if name.startswith("openpaisdk")} == OURS_FOR_LIST


def test_errors_are_sentences(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "status", "missing"], engine) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert "missing" in shown.err
    assert "Traceback" not in shown.err


def test_debug_shows_the_traceback(engine: Engine) -> None:
    from openpaisdk.errors import NotFoundError

    with pytest.raises(NotFoundError):
        main(["job", "status", "missing", "--debug"], engine)


def test_debug_after_the_dashes_belongs_to_the_command(engine: Engine) -> None:
    assert main(["job", "exec", "missing", "--", "x", "--debug"], engine) == 3


@pytest.mark.parametrize("words", [["sub", "--gpu", "two", "x"], ["wait", "x", "--timeout", "soon"]])
def test_a_number_that_is_none(words: list[str], engine: Engine) -> None:
    from openpaisdk.errors import UsageError

    with pytest.raises(UsageError, match=r"--\w+: expected a number, got '(two|soon)'"):
        engine.process(["job", *words])


def test_words_as_one_text_are_refused() -> None:
    from openpaisdk.errors import UsageError

    with pytest.raises(UsageError, match="expected a list of words, got the text 'job list'") as caught:
        Engine().process("job list")
    assert caught.value.hint == "Engine().process(['job', 'list'])"


def test_a_terminal_without_our_marks_gets_plain_ones() -> None:
    code = "import sys; from openpaisdk.cli.main import main; main(['-h']); print('\u00e9 \u20ac')"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"0 fine | 1 unexpected" in done.stdout
    assert done.stdout.endswith(b"\\xe9 \\u20ac\n")


class Broken(Engine):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def run(self, *_: Any) -> Any:
        raise self.error


def test_interrupt_ends_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "list"], Broken(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "job.yaml"), 1, "job.yaml: No such file"),
        (ValueError("odd"), 1, "ValueError: odd"),
    ],
)
def test_unexpected_errors_are_short(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "list"], Broken(error)) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown


def test_reader_that_leaves_is_no_error() -> None:
    code = (
        "import sys\nfrom openpaisdk.cli.main import main\nfrom openpaisdk.engine import Engine\n"
        "from openpaisdk.commands.result import Result\n"
        "class Much(Engine):\n"
        "    def run(self, *_):\n"
        "        return Result(iter([{'n': n} for n in range(100000)])), 'json'\n"
        "sys.exit(main(['job', 'list'], Much()))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


ROWS = [{"name": "a", "state": "RUNNING", "gpus": 1}, {"name": "longer", "state": "FAILED", "gpus": 16}]
VIEW = View(
    "table",
    columns=(
        Column("NAME", "name"),
        Column("STATE", "state", state=True),
        Column("GPUS", "gpus", right=True),
    ),
    name="name",
    empty="nothing here",
)


def test_plain_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show(Result(iter(ROWS), VIEW), "table")
    assert capsys.readouterr().out == "NAME    STATE    GPUS\na       RUNNING     1\nlonger  FAILED     16\n"


def test_empty_table_says_so_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    talk = io.StringIO()
    show(Result([], VIEW), "table", Context(talk=talk))
    assert capsys.readouterr().out == ""
    assert talk.getvalue() == "nothing here\n"


def test_empty_stream_is_still_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    show(Result(iter(()), VIEW), "json")
    assert json.loads(capsys.readouterr().out) == []
    show(Result(iter(()), VIEW), "yaml")
    assert capsys.readouterr().out == "[]\n"


def test_table_fits_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")
    rows = [{"name": "n" * 30, "state": "RUNNING " * 10, "gpus": 1}]
    show(Result(rows, VIEW), "table", Context(talk=io.StringIO(), rich_output=True))
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(len(line) <= 40 for line in lines)


def test_status_line_only_on_a_terminal() -> None:
    talk = io.StringIO()
    Context(talk=talk, terminal=False).status("waiting")
    assert talk.getvalue() == ""
    context = Context(talk=talk, terminal=True)
    context.status("waiting")
    context.status("waiting")
    context.say("done")
    assert talk.getvalue() == "\r\x1b[2Kwaiting\r\x1b[2Kdone\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 50) -> tuple[Context, Terminal]:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = Terminal()
    return Context(talk=screen, log=(screen, screen), terminal=True), screen


def test_the_two_streams_of_a_job_do_not_share_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    context, screen = on_a_terminal(monkeypatch)
    for text, stream in (
        ("from step", "stdout"),
        ("failed\n", "stderr"),
        (" 0", "stdout"),
        ("!\n", "stdout"),
    ):
        context.write_log(text, stream)
    assert screen.getvalue() == "from step\nfailed\n 0!\n"


def test_words_get_a_line_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a job that ended without a line break, and after `^C`."""
    context, screen = on_a_terminal(monkeypatch)
    context.write_log("50%")
    context.say("done")
    assert screen.getvalue() == "50%\ndone\n"
    context, screen = on_a_terminal(monkeypatch)
    context.write_log("line\n")
    context.interrupted("t goes on")
    context.interrupted()
    assert screen.getvalue() == "line\n\nt goes on\n"
    context, screen = on_a_terminal(monkeypatch)
    context.status("waiting")
    context.interrupted("t goes on")
    assert screen.getvalue() == "\r\x1b[2Kwaiting\r\x1b[2Kt goes on\n"


def test_words_are_not_cut_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    context, screen = on_a_terminal(monkeypatch, 40)
    context.say("train-8f3a goes on · opai job logs -f train-8f3a · opai job stop train-8f3a")
    assert screen.getvalue() == (
        "train-8f3a goes on\n  opai job logs -f train-8f3a\n  opai job stop train-8f3a\n"
    )


def test_prose_is_broken_between_words_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    words = "a job that waits for something for a reason that is long"
    for rich, lines in ((True, 2), (False, 1)):
        show(Result(words, View("text", prose=True)), "table", Context(rich_output=rich))
        shown = capsys.readouterr().out
        assert (len(shown.splitlines()), " ".join(shown.split())) == (lines, words)


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True), (None, True)])
def test_no_color(value: str | None, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", value) if value is not None else monkeypatch.delenv(
        "NO_COLOR", raising=False
    )
    assert main(["nonsense"]) == 2
    assert ("\x1b[" in screen.getvalue()) is coloured


def test_many_rows_stay_small(pai: FakePAI) -> None:
    """10,000 rows pass through without being held: the peak stays far below what they would take."""
    import tracemalloc

    row = {"name": "x" * 40, "username": "ann", "state": "RUNNING", "totalGpuNumber": 1}

    class Discard(io.TextIOBase):
        def write(self, text: str) -> int:
            return len(text)

    def run(output: str) -> int:
        saved, sys.stdout = sys.stdout, Discard()  # type: ignore[assignment]
        try:
            tracemalloc.start()
            show(Result(({**row, "name": f"job-{n}"} for n in range(10_000)), VIEW), output)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            sys.stdout = saved

    assert run("json") < 5_000_000
    assert run("table") < 5_000_000
