"""Notebook jobs on real servers: three ways, failures, another cluster, and out of a running job."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from openpaisdk.config import ClusterConfig, save_cluster
from support.jupyter import environment, printed, write_notebook
from support.servers import ServerProcess, end_processes_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class Person:
    """Somebody with a folder of notebooks, an embedded cluster and another one known as `lab`."""

    def __init__(self, home: Path, lab: ServerProcess) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True)
        known = ClusterConfig("lab", lab.uri, user=lab.user, token=lab.token)
        save_cluster(known, home / ".openpai" / "clusters.json")
        self("default", "add", "cluster-alias=local")

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "openpaisdk.cli", *words],
            env=environment(self.home),
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, f"opai {' '.join(words)}: {done.stdout}\n{done.stderr}"
        return done

    def output(self, job: str, name: str) -> Path:
        self("output", "download", "-j", job, name, "--to", f"of-{job}")
        return self.work / f"of-{job}" / name


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    folder = tmp_path_factory.mktemp("notebooks")
    with pytest.MonkeyPatch.context() as patch:
        # The lab's machine has Jupyter, as the person's has.
        patch.setenv("PATH", environment(folder)["PATH"])
        lab = ServerProcess(folder / "lab", "--launcher", "process").start()
    made = Person(folder / "person", lab)
    cells = ("lr = 1", "import beside\nprint('trained with', lr, beside.NAME)")
    write_notebook(made.work / "train.ipynb", *cells, tags={0: ["parameters"]})
    (made.work / "beside.py").write_text("NAME = 'a file beside it'\n")
    write_notebook(made.work / "broken.ipynb", "print('one')", "raise ValueError('two')")
    yield made
    lab.stop()
    end_processes_of(folder)


def test_batch(person: Person) -> None:
    done = person(
        "job", "notebook", "train.ipynb", "--param", "lr=0.01", "-s", "beside.py", "-j", "batch", "--follow"
    )
    assert "cell 2/3" in done.stdout and "trained with 0.01 a file beside it" in done.stdout
    assert "trained with 0.01 a file beside it" in printed(person.output("batch", "train.ipynb"))
    assert "injected-parameters" not in (person.work / "train.ipynb").read_text()


def test_a_failing_cell_fails_the_job_and_leaves_the_rest(person: Person) -> None:
    done = person("job", "notebook", "broken.ipynb", "-j", "broken", "--follow", code=10)
    assert "cell 2 of 2 failed" in done.stderr and "ValueError: two" in done.stderr
    assert printed(person.output("broken", "broken.ipynb")) == "one\n"


def test_script(person: Person) -> None:
    done = person(
        "job", "notebook", "train.ipynb", "--mode", "script", "-s", "beside.py", "-j", "script", "--follow"
    )
    assert done.stdout == "trained with 1 a file beside it\n"


def test_the_same_again_on_another_cluster(person: Person) -> None:
    person("job", "resubmit", "batch", "-j", "there", "-a", "lab", "--cpu", "2", "--wait")
    config = json.loads(person("job", "list", "-a", "lab", "there", "config", "-o", "json").stdout)
    assert config["taskRoles"]["notebook"]["resourcePerInstance"]["cpu"] == 2
    assert "a file beside it" in person("job", "logs", "-a", "lab", "there").stdout


def test_packages_that_do_not_install(person: Person) -> None:
    words = ("job", "notebook", "train.ipynb", "--mode", "script", "-p", "./no-such-package", "-j", "lacking")
    done = person(*words, "--wait", "--env", "PIP_NO_INDEX=1", code=10)
    assert "opai job why lacking" in done.stderr
    assert "no-such-package" in person("job", "logs", "lacking", "-o", "json").stdout


def test_an_interactive_job_through_the_server_and_out_of_itself(person: Person) -> None:
    """The lab's Jupyter is reached through its server, by somebody who does not have the token."""
    person(
        "job",
        "notebook",
        "train.ipynb",
        "--mode",
        "interactive",
        "-s",
        "beside.py",
        "-j",
        "live",
        "-a",
        "lab",
    )
    (person.home / ".openpai" / "jupyter-tokens.json").unlink()
    with connected(person, "live") as found:
        address = found["address"]
        contents = ask(f"{address}/api/contents", found["token"])
        assert {entry["name"] for entry in contents["content"]} >= {"train.ipynb", "beside.py"}
        edited = ask(f"{address}/api/contents/beside.py", found["token"])
        edited["content"] = "NAME = 'changed inside'\n"
        ask(f"{address}/api/contents/beside.py", found["token"], edited)
        inside = "opai job resubmit --mode batch -j executed"
        person("job", "exec", "-a", "lab", "live", "--", "sh", "-c", inside)
    person("job", "wait", "-a", "lab", "executed")
    assert "trained with 1 changed inside" in person("job", "logs", "-a", "lab", "executed").stdout
    assert found["token"] not in person("job", "logs", "-a", "lab", "live", "-o", "json").stdout


def test_the_connection_ends_with_its_job(person: Person) -> None:
    with connected(person, "live") as found:
        person("job", "stop", "-a", "lab", "live")
        assert "live has ended (stopped)" in found["process"].stderr.read()
        assert found["process"].wait(20) == 0
    assert "nothing to connect to" in person("job", "connect", "-a", "lab", "live", code=4).stderr


class connected:
    """`opai job connect` while the block runs."""

    def __init__(self, person: Person, job: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "openpaisdk.cli", "job", "connect", "-a", "lab", job, "--no-browser"],
            env=environment(person.home),
            cwd=person.work,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> dict[str, Any]:
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        assert " is at http://" in said, said + self.process.stderr.read()
        url, _, token = said.split(" is at ")[1].strip().partition("?token=")
        return {"address": url.partition("/lab/")[0], "token": token, "process": self.process}

    def __exit__(self, *error: object) -> None:
        assert self.process.stderr is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        self.process.stderr.close()


def ask(address: str, token: str, send: Any = None) -> Any:
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    body = json.dumps(send).encode() if send is not None else None
    with urlopen(Request(address, body, headers, method="PUT" if body else "GET"), timeout=30) as answer:
        return json.load(answer)
