"""Clusters and defaults: precedence, what is refused, and files that survive two writers."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from openpaisdk import config
from openpaisdk.config import ClusterConfig
from openpaisdk.errors import ConfigError, NotFoundError, UsageError

pytestmark = pytest.mark.usefixtures("own_home")


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def two_clusters(home):
    write(
        home / "clusters.json",
        {
            "lab": {
                "pai_uri": "http://lab",
                "user": "ann",
                "passwd": "secret",
                "hdfs_web_uri": "http://lab:1",
            },
            "cloud": {"pai_uri": "https://cloud", "token": "jwt", "verify": False, "colour": "blue"},
        },
    )


def test_clusters_as_documented(own_home):
    two_clusters(own_home)
    known = config.load_clusters()
    assert list(known) == ["lab", "cloud"]
    assert (known["lab"].pai_uri, known["lab"].user, known["lab"].passwd) == ("http://lab", "ann", "secret")
    assert known["lab"].hdfs_web_uri == "http://lab:1"
    assert known["cloud"].verify is False
    assert known["cloud"].extra == {"colour": "blue"}
    assert config.__cluster_config_file__ == str(own_home / "clusters.json")


def test_secrets_are_masked_unless_asked_for():
    cluster = ClusterConfig("x", "http://x", passwd="hunter2", token="jwt", extra={"apiKey": "k", "a": 1})
    assert "hunter2" not in repr(cluster) and "jwt" not in repr(cluster)
    assert cluster.as_dict() == {
        "pai_uri": "http://x",
        "passwd": "******",
        "token": "******",
        "apiKey": "******",
        "a": 1,
    }
    assert cluster.as_dict(mask=False)["passwd"] == "hunter2"


def test_save_keeps_the_others_and_is_private(own_home):
    two_clusters(own_home)
    os.chmod(own_home / "clusters.json", 0o644)
    config.save_cluster(ClusterConfig("new", "http://new", user="me", verify="/ca.pem", workspace="/w"))
    found = json.loads((own_home / "clusters.json").read_text())
    assert list(found) == ["lab", "cloud", "new"]
    assert found["new"] == {"pai_uri": "http://new", "user": "me", "verify": "/ca.pem", "workspace": "/w"}
    assert found["cloud"]["colour"] == "blue"
    assert mode(own_home / "clusters.json") == 0o600
    assert sorted(os.listdir(own_home)) == ["clusters.json", "clusters.json.lock"]


def test_a_new_home_is_private(own_home):
    config.save_cluster(ClusterConfig("new", "http://new"))
    assert mode(own_home) == 0o700
    assert mode(own_home / "clusters.json") == 0o600


def test_a_link_stays_a_link(own_home, tmp_path):
    own_home.mkdir()
    (tmp_path / "dotfiles.json").write_text("{}")
    (own_home / "clusters.json").symlink_to(tmp_path / "dotfiles.json")
    config.save_cluster(ClusterConfig("new", "http://new"))
    assert (own_home / "clusters.json").is_symlink()
    assert "new" in json.loads((tmp_path / "dotfiles.json").read_text())


def test_remove(own_home):
    two_clusters(own_home)
    config.remove_cluster("lab")
    assert list(config.load_clusters()) == ["cloud"]
    with pytest.raises(NotFoundError, match="'lab'"):
        config.remove_cluster("lab")


def test_the_list_that_the_other_client_writes(own_home):
    write(
        own_home / "clusters.json",
        [
            {
                "alias": "ts",
                "username": "u",
                "password": "p",
                "rest_server_uri": "h/rest-server",
                "https": True,
            }
        ],
    )
    known = config.load_clusters()["ts"]
    assert (known.pai_uri, known.user, known.passwd) == ("https://h/rest-server", "u", "p")
    config.save_cluster(ClusterConfig("mine", "http://m", user="me", passwd="pw"))
    found = json.loads((own_home / "clusters.json").read_text())
    assert [item["alias"] for item in found] == ["ts", "mine"]
    assert found[1]["username"] == "me"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": oops\n}', r"clusters.json:2:8: not valid JSON"),
        ("[1, 2]", "expected an object of clusters"),
        ('{"a": "http://x"}', "a: expected an object, got .http:"),
        ('{"a": {"user": "me"}}', "a: pai_uri is missing"),
        ('{"a": {"pai_uri": 7}}', r"a.pai_uri: expected some text, got 7"),
        ('{"a": {"pai_uri": "x", "verify": 3}}', "verify: expected true, false or the path"),
    ],
)
def test_broken_clusters_file(own_home, text, said):
    write(own_home / "clusters.json", text)
    with pytest.raises(ConfigError, match=said):
        config.load_clusters()


def test_a_broken_file_is_not_overwritten(own_home):
    write(own_home / "clusters.json", "{oops")
    with pytest.raises(ConfigError):
        config.save_cluster(ClusterConfig("new", "http://new"))
    assert (own_home / "clusters.json").read_text() == "{oops"


def test_not_text(own_home):
    own_home.mkdir()
    (own_home / "clusters.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ConfigError, match="not UTF-8"):
        config.load_clusters()


def test_without_any_cluster_the_local_one():
    found = config.get_cluster()
    assert (found.alias, found.is_local) == ("local", True)


def test_the_only_cluster_needs_no_alias(own_home):
    write(own_home / "clusters.json", {"lab": {"pai_uri": "http://lab"}})
    assert config.get_cluster().alias == "lab"
    assert config.get_cluster("local").is_local


def test_several_clusters_need_a_choice(own_home):
    two_clusters(own_home)
    with pytest.raises(ConfigError, match=r"\(cloud, lab\)") as caught:
        config.get_cluster()
    assert "-a ALIAS" in caught.value.hint
    assert config.get_cluster("cloud").alias == "cloud"


def test_unknown_alias_with_the_nearest(own_home):
    two_clusters(own_home)
    with pytest.raises(NotFoundError, match="'clod'") as caught:
        config.get_cluster("clod")
    assert "did you mean `cloud`?" in caught.value.hint
    with pytest.raises(NotFoundError) as caught:
        config.get_cluster("zzzzzz")
    assert "cloud, lab, local" in caught.value.hint


def test_alias_precedence(own_home, monkeypatch):
    write(own_home / "clusters.json", {name: {"pai_uri": "http://" + name} for name in "abcd"})
    config.select("a")
    assert config.get_cluster().alias == "a"
    config.add_defaults(["cluster-alias=b"])
    assert config.get_cluster().alias == "b"
    monkeypatch.setenv("OPAI_CLUSTER_ALIAS", "c")
    assert config.get_cluster().alias == "c"
    assert config.get_cluster("d").alias == "d"


def test_environment_describes_a_cluster(own_home, monkeypatch):
    two_clusters(own_home)
    assert config.from_env() is None
    for name, value in {
        "PAI_URI": "https://env",
        "USER": "u",
        "TOKEN": "t",
        "VERIFY": "no",
        "WORKSPACE": "/w",
        "HDFS_WEB_URI": "http://h",
        "PASSWD": "p",
    }.items():
        monkeypatch.setenv("OPAI_" + name, value)
    found = config.get_cluster()
    assert found.as_dict(mask=False) == {
        "pai_uri": "https://env",
        "user": "u",
        "passwd": "p",
        "token": "t",
        "hdfs_web_uri": "http://h",
        "verify": False,
        "workspace": "/w",
    }
    assert config.get_cluster("lab").alias == "lab"


def test_select_says_which_file(own_home, tmp_path):
    two_clusters(own_home)
    assert config.select("lab") == str(own_home / "defaults.json")
    project = tmp_path / "work" / ".openpai" / "defaults.json"
    write(project, {"cluster-alias": "cloud"})
    assert config.select("lab") == str(project)
    assert config.get_cluster().alias == "lab"
    with pytest.raises(NotFoundError):
        config.select("nowhere")
    config.select("local", user_wide=True)
    assert json.loads((own_home / "defaults.json").read_text()) == {"cluster-alias": "local"}


def test_defaults_precedence(own_home, tmp_path, monkeypatch):
    assert config.setting("cpu") == 1
    config.add_defaults({"cpu": 2, "image": "user/image"}, user_wide=True)
    assert config.setting("cpu") == 2
    write(tmp_path / "work" / ".openpai" / "defaults.json", {"cpu": 3})
    assert config.setting("cpu") == 3
    assert config.setting("image") == "user/image"
    monkeypatch.setenv("OPAI_CPU", "4")
    assert config.setting("cpu") == 4
    assert config.setting("cpu", 0) == 0
    rows = {row["name"]: row for row in config.list_defaults()}
    assert rows["cpu"] == {"name": "cpu", "value": 4, "source": "OPAI_CPU"}
    assert rows["image"]["source"] == str(own_home / "defaults.json")


def test_project_defaults_are_made_in_the_working_directory(tmp_path):
    assert config.add_defaults(["mem=8GB", "vc = default".replace(" ", "")]) == {"mem": 8192, "vc": "default"}
    path = tmp_path / "work" / "deep" / ".openpai" / "defaults.json"
    assert json.loads(path.read_text()) == {"mem": 8192, "vc": "default"}
    assert config.project_file() == str(path)
    assert config.remove_default("mem") is True
    assert config.remove_default("mem") is False
    assert json.loads(path.read_text()) == {"vc": "default"}


def test_the_nearest_project_wins(tmp_path, monkeypatch):
    write(tmp_path / "work" / ".openpai" / "defaults.json", {"vc": "outer"})
    assert config.setting("vc") == "outer"
    config.add_defaults(["vc=changed"])
    assert json.loads((tmp_path / "work" / ".openpai" / "defaults.json").read_text()) == {"vc": "changed"}
    write(tmp_path / "work" / "deep" / ".openpai" / "defaults.json", {"vc": "inner"})
    assert config.setting("vc") == "inner"


def test_the_users_own_file_is_no_project(tmp_path, monkeypatch):
    write(tmp_path / "elsewhere" / ".openpai" / "defaults.json", {"vc": "home"})
    below = tmp_path / "elsewhere" / "x"
    below.mkdir()
    monkeypatch.chdir(below)
    assert config.project_file() is None


def test_unknown_defaults_are_refused():
    with pytest.raises(UsageError, match="'imgae'") as caught:
        config.add_defaults(["imgae=x"])
    assert caught.value.hint == "did you mean `image`?"
    with pytest.raises(UsageError, match="sets nothing"):
        config.add_defaults(["image"])
    assert config.known_default("Cluster_Alias") == "cluster-alias"


@pytest.mark.parametrize("pair", ["cpu=many", "cpu=1.5", "gpu=-1", "mem=lots", "timeout=0", "image="])
def test_defaults_are_typed(pair, own_home):
    with pytest.raises(ConfigError, match=pair.partition("=")[0]):
        config.add_defaults(["vc=x", pair], user_wide=True)
    assert not (own_home / "defaults.json").exists()


def test_values_may_hold_equals_signs():
    assert config.add_defaults(["image=repo/x:tag=1"]) == {"image": "repo/x:tag=1"}


def test_a_wrong_value_names_where_it_is(own_home, monkeypatch):
    write(own_home / "defaults.json", {"cpu": "many"})
    with pytest.raises(ConfigError, match=r"defaults.json: cpu: expected a whole number, got 'many'"):
        config.setting("cpu")
    monkeypatch.setenv("OPAI_CPU", "x")
    with pytest.raises(ConfigError, match="OPAI_CPU"):
        config.setting("cpu")
    write(own_home / "defaults.json", "[]")
    with pytest.raises(ConfigError, match="expected an object"):
        config.setting("gpu")


@pytest.mark.parametrize(
    ("text", "amount"), [("512", 512), (64, 64), ("8GB", 8192), ("1.5g", 1536), ("2 gib", 2048)]
)
def test_megabytes(text, amount):
    assert config.megabytes(text) == amount


@pytest.mark.parametrize("text", ["", "GB", "-1", "1kg", "nan", "1e999", "0"])
def test_not_megabytes(text):
    with pytest.raises(UsageError):
        config.megabytes(text)


def test_tokens_are_remembered_per_user_and_address(own_home):
    ann, bob = (ClusterConfig("x", "http://x", user=name) for name in ("ann", "bob"))
    config.remember_token(ann, "one")
    assert config.cached_token(ann) == "one"
    assert config.cached_token(bob) is None
    assert mode(own_home / "tokens.json") == 0o600
    config.remember_token(ann, None)
    assert config.cached_token(ann) is None


WRITER = """
import sys
from openpaisdk.config import ClusterConfig, save_cluster
for number in range(20):
    save_cluster(ClusterConfig(f"{sys.argv[1]}-{number}", "http://x"))
"""


def test_processes_that_write_at_once_lose_nothing(own_home):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name]) for name in ("a", "b", "c", "d")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(config.load_clusters()) == 80
    assert sorted(os.listdir(own_home)) == ["clusters.json", "clusters.json.lock"]


def test_a_writer_that_fails_leaves_the_file_as_it_was(own_home, monkeypatch):
    two_clusters(own_home)
    before = (own_home / "clusters.json").read_text()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        config.save_cluster(ClusterConfig("new", "http://new"))
    assert (own_home / "clusters.json").read_text() == before
    assert sorted(os.listdir(own_home)) == ["clusters.json", "clusters.json.lock"]


def test_aliases_that_cannot_be_typed_are_refused():
    for alias in ("", "a b", "a/b", "~x"):
        with pytest.raises(UsageError, match="alias"):
            config.save_cluster(ClusterConfig(alias, "http://x"))


@pytest.mark.parametrize(
    ("number", "below_home", "hint"),
    [(28, True, "make room"), (30, True, "OPENPAI_HOME"), (13, False, "permissions")],
)
def test_what_cannot_be_written_comes_with_a_remedy(number, below_home, hint, tmp_path, monkeypatch):
    from openpaisdk.config import home_path, write_private

    target = home_path("clusters.json") if below_home else tmp_path / "x" / "defaults.json"
    write_private(target, "old")

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ConfigError, match="cannot write") as caught:
        write_private(target, "new")
    assert hint in caught.value.hint
    assert [path.read_text() for path in Path(target).parent.iterdir()] == ["old"]
