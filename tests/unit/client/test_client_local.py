"""The embedded cluster's start: once for many shells, again after a crash, and never a stranger's process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from openpaisdk import local
from openpaisdk.core import Cluster
from openpaisdk.errors import UnavailableError, UsageError
from openpaisdk.local import process
from openpaisdk.version import __version__

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the embedded cluster needs POSIX")

# As much of a server as its starter sees: options, state file, ready line, and a few answers.
SERVER = """
import argparse, http.server, json, os, signal, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--local", action="store_true")
for name in ("data-dir", "state-file", "ready-fd", "note", "version"):
    parser.add_argument("--" + name)
options = parser.parse_args()
if os.environ.get("FAIL"):
    sys.exit("error: " + os.environ["FAIL"])
os.makedirs(options.data_dir, exist_ok=True)
with open(os.path.join(options.data_dir, "starts"), "a") as starts:
    starts.write(f"{os.getpid()} {options.note or ''}\\n")
jobs = {"u~a": "RUNNING"} if options.note == "busy" else {}

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, data):
        body = json.dumps(data).encode()
        self.send_response(200 if self.headers["authorization"] == "Bearer t" else 401)
        self.send_header("OpenPAI-Extensions", "wait")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/api/v2/jobs"):
            return self.answer([{"username": "u", "name": name[2:]} for name, state in jobs.items()])
        self.answer({"load": {"cpu": 1}, "path": self.path, "name": "j"})

    def do_PUT(self):
        jobs.clear()
        self.answer({})

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
boot = next(int(line.split()[1]) for line in open("/proc/stat") if line.startswith("btime"))
ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
state = {
    "pid": os.getpid(), "pid_started": boot + ticks / os.sysconf("SC_CLK_TCK"), "token": "t", "user": "me",
    "uri": "http://127.0.0.1:%d" % server.server_port, "version": options.version or os.environ["VERSION"],
    "data_dir": options.data_dir, "launcher": "process",
}
with open(options.state_file + ".new", "w") as file:
    json.dump(state, file)
os.replace(options.state_file + ".new", options.state_file)
os.write(int(options.ready_fd), json.dumps({"capacity": {"cpu": 2}}).encode() + b"\\n")
os.close(int(options.ready_fd))
server.serve_forever()
"""


@pytest.fixture
def program(own_home, tmp_path, monkeypatch):
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("the server of this test reads /proc")
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    monkeypatch.setattr(local, "PROGRAM", (str(path),))
    monkeypatch.setenv("VERSION", __version__)
    yield path
    local.stop()
    for line in started():
        assert gone(int(line.split()[0]))


def started():
    try:
        with open(os.path.join(local.data_folder(), "starts")) as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def state():
    with open(local.state_file()) as file:
        return json.load(file)


def gone(pid):
    return not os.path.exists(f"/proc/{pid}") or process.start_ticks(pid) == 0


def kill_now():
    pid = state()["pid"]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_starts_once_and_is_found_again(program):
    first = local.ensure()
    assert (first.alias, first.user, first.token) == ("local", "me", "t")
    assert first.extra["started"] == {"capacity": {"cpu": 2}}
    again = local.ensure()
    assert again.pai_uri == first.pai_uri
    assert again.extra == {}
    assert len(started()) == 1
    assert os.stat(local.log_path()).st_mode & 0o777 == 0o600


def test_the_server_is_apart_from_the_shell(program):
    local.ensure()
    pid = state()["pid"]
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == os.path.dirname(local.state_file())
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"


def test_shells_that_start_at_once_start_one_server(program):
    code = textwrap.dedent(f"""
        import sys
        from openpaisdk import local
        local.PROGRAM = ({str(program)!r},)
        config = local.ensure()
        print(config.pai_uri, "started" in config.extra)
    """)
    shells = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    found = [shell.communicate(timeout=60)[0].split() for shell in shells]
    assert len(started()) == 1
    assert len({uri for uri, _ in found}) == 1
    assert sorted(told for _, told in found) == ["False"] * 5 + ["True"]
    local.stop()


def test_after_a_crash_it_is_started_again(program):
    before = local.ensure()
    kill_now()
    after = local.ensure()
    assert after.extra["started"]
    assert len(started()) == 2
    assert before.pai_uri != after.pai_uri or len(started()) == 2


def test_the_number_of_a_dead_server_given_to_another_process(program):
    local.ensure()
    old = state()
    kill_now()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        with open(local.state_file(), "w") as file:
            json.dump({**old, "pid": stranger.pid, "pid_started": old["pid_started"] - 60}, file)
        assert local.status()["running"] is False
        assert local.ensure().extra["started"]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    assert len(started()) == 2


@pytest.mark.parametrize("text", ["{oops", "[]", '{"pid": 1}', '{"pid": "x", "uri": "u", "token": "t"}', ""])
def test_a_state_file_that_says_nothing(program, text):
    os.makedirs(os.path.dirname(local.state_file()))
    with open(local.state_file(), "w") as file:
        file.write(text)
    assert local.ensure().extra["started"]


def test_an_older_server_is_replaced(program, monkeypatch):
    monkeypatch.setenv("VERSION", "0.0.1")
    local.ensure()
    monkeypatch.setenv("VERSION", __version__)
    assert local.ensure().extra["started"]
    assert len(started()) == 2
    assert state()["version"] == __version__


def test_a_newer_server_is_used(program, monkeypatch):
    monkeypatch.setenv("VERSION", "99.1.0")
    local.ensure()
    assert local.ensure().extra == {}
    assert len(started()) == 1


def test_a_server_that_does_not_start_says_why(program, monkeypatch):
    monkeypatch.setenv("FAIL", "the data folder is read-only")
    with pytest.raises(
        UnavailableError, match="did not start: error: the data folder is read-only"
    ) as caught:
        local.ensure()
    assert local.log_path() in caught.value.hint


def test_a_server_that_is_never_ready(program, monkeypatch):
    program.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(local, "READY_WITHIN", 0.3)
    with pytest.raises(UnavailableError, match=r"it was not ready within 0\.3 s"):
        local.ensure()


def test_stop_and_status(program):
    assert local.status() == {"running": False, "data_dir": local.data_folder(), "log": local.log_path()}
    assert local.stop() is None
    local.ensure()
    found = local.status()
    assert (found["running"], found["pid"], found["load"]) == (True, state()["pid"], {"cpu": 1})
    assert "token" not in found
    stopped = local.stop()
    assert stopped["pid"] == found["pid"] and "token" not in stopped
    assert not os.path.exists(local.state_file())


def test_options_survive_a_crash_and_not_a_stop(program):
    local.start(["--note", "mine"])
    with pytest.raises(UsageError, match="already runs"):
        local.start()
    kill_now()
    local.ensure()
    local.stop()
    local.ensure()
    assert [line.partition(" ")[2] for line in started()] == ["mine", "mine", ""]


def test_reset_stops_jobs_and_forgets(program):
    local.start(["--note", "busy"])
    pid = state()["pid"]
    local.reset()
    assert not os.path.exists(local.data_folder())
    assert gone(pid)
    local.reset()


def test_a_client_brings_the_server_back(program):
    said = []
    with Cluster.open(on_local_start=said.append) as cluster:
        assert cluster.job("j")["name"] == "j"
        kill_now()
        assert cluster.job("j")["name"] == "j"
    assert said == [{"capacity": {"cpu": 2}}] * 2
    assert cluster.user == "me"


def test_a_stranger_on_the_old_port_is_not_believed(program, faulty):
    with Cluster.open() as cluster:
        cluster.job("j")
        kill_now()
        cluster.transport.origin = ("http", "127.0.0.1", faulty.port)
        assert cluster.job("j")["name"] == "j"
    assert len(started()) == 2


def test_a_body_that_was_read_is_not_sent_again(program, faulty):
    with Cluster.open() as cluster:
        cluster.job("j")
        cluster.transport.origin = ("http", "127.0.0.1", faulty.port)
        cluster.request("PUT", "/webhdfs/v1/x", body=iter([b"a", b"b"]))
    assert [body for *_, body in faulty.requests] == [b"ab"]
    assert len(started()) == 1


def test_a_token_that_changed_is_read_again(program):
    with Cluster.open() as cluster:
        cluster._token = "old"
        assert cluster.job("j")["name"] == "j"
    assert len(started()) == 1


def test_refused_although_the_process_lives(program):
    """The file names a port where nobody listens: the server is ended and another one started."""
    local.ensure()
    old = state()
    with open(local.state_file(), "w") as file:
        json.dump({**old, "uri": "http://127.0.0.1:9"}, file)
    local.ensure(restart_if_dead=True)
    assert len(started()) == 2
    assert gone(old["pid"])


def test_windows_is_told_clearly(monkeypatch):
    monkeypatch.setattr(local.os, "name", "nt")
    with pytest.raises(UsageError, match="Linux or macOS") as caught:
        local.ensure()
    monkeypatch.undo()
    assert "WSL" in caught.value.hint


def test_without_proc_the_process_is_told_apart_by_psutil(program, monkeypatch):
    local.ensure()
    monkeypatch.setattr(process, "start_ticks", lambda pid: None)
    assert process.alive(state(), thorough=True)
    assert not process.alive({**state(), "pid_started": 1.0}, thorough=True)
    assert process.began_by_psutil(2**22 + 1) == 0.0


def test_a_server_is_known_again_after_somebody_set_the_clock(monkeypatch):
    ticks = process.start_ticks(os.getpid())
    known = {"pid": os.getpid(), "pid_started": 1.0, "pid_ticks": ticks}
    assert process.alive(known) and not process.alive({**known, "pid_ticks": ticks + 1})


def test_the_client_loads_where_there_is_no_fcntl():
    code = (
        "import sys; sys.modules['fcntl'] = None; import openpaisdk.core, openpaisdk.local, openpaisdk.config"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_server_that_ends_at_once_is_not_said_to_be_slow(monkeypatch):
    monkeypatch.setattr(local, "PROGRAM", ("-c", "raise SystemExit(3)"))
    with pytest.raises(UnavailableError, match="did not start: it ended with exit code 3") as caught:
        local.ensure()
    assert "server.log" in caught.value.hint


def test_a_full_disk_is_named_as_the_reason(monkeypatch):
    monkeypatch.setattr(local, "PROGRAM", ("-c", "raise SystemExit(1)"))
    monkeypatch.setattr(local, "ROOM_NEEDED", 2**63)
    with pytest.raises(UnavailableError) as caught:
        local.ensure()
    assert "kB are free" in caught.value.hint
