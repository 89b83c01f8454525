"""Clusters and defaults: what is kept, what is asked for, what is refused."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path

import pytest

from openpaisdk.cli.main import main
from openpaisdk.config import cluster_file, load_clusters
from openpaisdk.core import Cluster
from openpaisdk.engine import Engine
from openpaisdk.errors import ConfigError, LoginError, NotFoundError, UsageError
from support.fake_pai import FakePAI

ADDRESS = ["--pai-uri", "http://pai.example.org"]


@pytest.fixture
def reachable(pai: FakePAI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """Every address leads to the double."""
    monkeypatch.chdir(tmp_path)
    genuine_init = Cluster.__init__

    def through_the_double(self: Cluster, *args: object, **options: object) -> None:
        genuine_init(self, *args, **{**options, "transport": pai})  # type: ignore[arg-type]

    monkeypatch.setattr(Cluster, "__init__", through_the_double)
    return Engine()


def type_in(monkeypatch: pytest.MonkeyPatch, text: str, *, terminal: bool = False) -> None:
    class Typed(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr("sys.stdin", Typed(text))
    monkeypatch.setattr("getpass.getpass", lambda prompt: text)


def test_password_is_asked_for_and_the_connection_tried(
    reachable: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, "secret", terminal=True)
    assert main(["cluster", "add", "lab", *ADDRESS, "--user", "ann"], reachable) == 0
    shown = capsys.readouterr()
    assert "the connection works" in shown.err
    assert "secret" not in shown.out + shown.err
    kept = Path(cluster_file())
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["lab"] == {
        "pai_uri": "http://pai.example.org",
        "user": "ann",
        "passwd": "secret",
    }


def test_wrong_password_is_not_kept(reachable: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "wrong\n")
    with pytest.raises(LoginError) as caught:
        reachable.process(["cluster", "add", "lab", *ADDRESS, "--user", "ann", "--password-stdin"])
    assert "--no-check" in (caught.value.hint or "")
    assert load_clusters() == {}
    reachable.process(["cluster", "add", "lab", *ADDRESS, "--user", "ann", "--password-stdin", "--no-check"])
    assert list(load_clusters()) == ["lab"]


def test_nobody_to_ask(reachable: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "")
    with pytest.raises(UsageError, match="password is needed"):
        reachable.process(["cluster", "add", "lab", *ADDRESS, "--user", "ann"])


def test_tokens(reachable: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "a-token\n")
    shown = reachable.process(["cluster", "add", "-a", "lab", *ADDRESS, "--token-stdin"])
    assert shown["token"] == "******"
    assert load_clusters()["lab"].token == "a-token"
    type_in(monkeypatch, "typed", terminal=True)
    reachable.process(["cluster", "add", "lab", "--token", "--no-check"])
    assert load_clusters()["lab"].token == "typed"
    reachable.process(["cluster", "add", "lab", "--workspace", "hdfs://x", "--no-verify", "--no-check"])
    assert (load_clusters()["lab"].workspace, load_clusters()["lab"].verify) == ("hdfs://x", False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add"], "needs a name"),
        (["add", "lab"], "address of cluster `lab` is missing"),
        (["add", "lab", *ADDRESS], "user name on cluster `lab` is missing"),
        (["select"], "which cluster"),
        (["remove"], "which cluster"),
    ],
)
def test_what_is_missing_is_named(engine: Engine, words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.process(["cluster", *words])


@pytest.mark.usefixtures("known_token")
def test_unknown_aliases_name_the_nearest(engine: Engine) -> None:
    engine.process(["cluster", "add", "lab", *ADDRESS, "--no-check"])
    for words in (
        ["cluster", "remove", "lap"],
        ["cluster", "select", "lap"],
        ["cluster", "list", "-a", "lap"],
    ):
        with pytest.raises(NotFoundError) as caught:
            engine.process(words)
        assert "lab" in (caught.value.hint or "")


@pytest.mark.usefixtures("known_token")
def test_only_one_cluster_needs_no_name(engine: Engine) -> None:
    engine.process(["cluster", "add", "lab", *ADDRESS, "--no-check"])
    assert engine.process(["cluster", "list"])[0]["default"] is True
    assert engine.process(["cluster", "select"])["alias"] == "lab"
    engine.process(["cluster", "add", "two", *ADDRESS, "--no-check"])
    assert [row["default"] for row in engine.process(["cluster", "list"])] == [True, False]
    assert engine.process(["cluster", "remove", "lab", "two"]) == ["lab", "two"]
    assert engine.process(["cluster", "list"]) == []


@pytest.mark.usefixtures("known_token")
def test_a_removed_cluster_is_no_default(engine: Engine) -> None:
    for alias in ("lab", "two"):
        engine.process(["cluster", "add", alias, *ADDRESS, "--no-check"])
    engine.process(["cluster", "select", "lab"])
    engine.process(["default", "add", "cluster-alias=lab"])
    engine.process(["cluster", "remove", "two"])
    assert len(engine.process(["default", "list"])) == 1
    engine.process(["cluster", "remove", "lab"])
    assert engine.process(["default", "list"]) == []


@pytest.mark.usefixtures("known_token")
def test_several_clusters_and_none_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for alias in ("one", "two"):
        Engine().process(["cluster", "add", alias, *ADDRESS, "--no-check"])
    with pytest.raises(ConfigError, match="one, two"):
        Engine().process(["job", "list"])


def test_resources(engine: Engine, pai: FakePAI, capsys: pytest.CaptureFixture[str]) -> None:
    pai.virtual_clusters["default"]["resourcesUsed"] = {"vCores": 3, "memory": 2048, "GPUs": 1}
    main(["cluster", "resources"], engine)
    header, row = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "VC"
    assert row.split() == ["default", "1", "of", "4", "3", "of", "16", "2", "GB", "of", "64", "GB"]
    with pytest.raises(NotFoundError) as caught:
        engine.process(["cluster", "resources", "defualt"])
    assert "default" in (caught.value.hint or "")


def test_defaults(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["default", "add", "image=a=b", "gpu=2"], engine) == 0
    assert "image is now a=b" in capsys.readouterr().err
    engine.process(["default", "add", "-g", "gpu=1", "vc=lab"])
    rows = {row["name"]: row["value"] for row in engine.process(["default", "list"])}
    assert rows == {"image": "a=b", "gpu": 2, "vc": "lab"}
    assert engine.process(["default", "remove", "gpu"]) == ["gpu"]
    with pytest.raises(NotFoundError, match="gpu is not set in the project's defaults"):
        engine.process(["default", "remove", "gpu"])
    assert engine.process(["default", "remove", "-g", "gpu", "vc"]) == ["gpu", "vc"]


def test_a_ca_file_is_found_again_from_any_folder(reachable, known_token, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reachable.process(
        ["cluster", "add", "lab", *ADDRESS, "--user", "ann", "--ca-file", "ca.pem", "--no-check"]
    )
    assert load_clusters()["lab"].verify == str(tmp_path / "ca.pem")


def test_an_empty_password_is_no_password(reachable: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "", terminal=True)
    with pytest.raises(UsageError, match="no password was typed"):
        reachable.process(["cluster", "add", "-a", "lab", *ADDRESS, "--user", "ann"])
    assert not Path(cluster_file()).exists()


def test_a_removed_cluster_leaves_no_token_behind() -> None:
    from openpaisdk.config import ClusterConfig, cached_token, remember_token, save_cluster

    config = ClusterConfig("lab", "http://pai.example.org", user="ann", passwd="x")
    save_cluster(config)
    remember_token(config, "a-token")
    Engine().process(["cluster", "remove", "lab"])
    assert cached_token(config) is None
