"""Which files go with a job."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.storage.ignore import Rules
from openpaisdk.workspace.scan import scan
from openpaisdk.workspace.shipping import check_limit, plan_source, show_size


def make(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def test_ships_the_folder_without_caches_environments_and_ignored_files(tmp_path: Path) -> None:
    make(
        tmp_path,
        "train.py", "lib/net.py", "lib/net.pyc", ".git/config", "__pycache__/a", "data/big.bin", "keep.log",
        "a.log", "env/pyvenv.cfg", "env/bin/python", "node_modules/x/y.js", "lib/tmp/x",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("data/\n*.log\n!keep.log\n")
    (tmp_path / "lib/.gitignore").write_text("/tmp\n")
    found = scan([], str(tmp_path))
    assert set(found.files) == {"train.py", "lib/net.py", "keep.log", ".gitignore", "lib/.gitignore"}
    assert found.left_out == ["env (a virtual environment)"]


def test_opaiignore_speaks_after_gitignore_and_after_what_is_never_sent(tmp_path: Path) -> None:
    make(tmp_path, "model.bin", "notes.txt", "node_modules/x.js")
    (tmp_path / ".gitignore").write_text("*.bin\n")
    (tmp_path / ".opaiignore").write_text("!model.bin\nnotes.txt\n!node_modules\n.gitignore\n.opaiignore\n")
    assert set(scan([], str(tmp_path)).files) == {"model.bin", "node_modules/x.js"}


def test_rules_of_the_repository_above_count(tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", "sub/a.py", "sub/b.tmp", "sub/deep/c.tmp", "sub/out/x")
    (tmp_path / ".gitignore").write_text("*.tmp\n/sub/out\n")
    assert set(scan([], str(tmp_path / "sub")).files) == {"a.py"}


def test_named_files_and_folders_keep_their_place(tmp_path: Path) -> None:
    make(tmp_path, "here/a.py", "here/src/b.py", "here/src/c.txt", "there/d.py", "there/pack/e.py")
    here = str(tmp_path / "here")
    found = scan(["src", "*.py", "../there/pack", str(tmp_path / "there/d.py")], here)
    assert set(found.files) == {"a.py", "src/b.py", "src/c.txt", "pack/e.py", "d.py"}


def test_a_named_folder_is_sent_although_git_ignores_it(tmp_path: Path) -> None:
    make(tmp_path, "data/x.bin")
    (tmp_path / ".gitignore").write_text("data/*\n")
    assert set(scan(["data"], str(tmp_path)).files) == {"data/x.bin"}


def test_links_inside_stay_links_and_those_outside_become_files_or_stay_at_home(tmp_path: Path) -> None:
    make(tmp_path, "code/a.py", "other/data.bin")
    code = tmp_path / "code"
    (code / "same.py").symlink_to("a.py")
    (code / "copy.bin").symlink_to("../other/data.bin")
    (code / "dataset").symlink_to("../other")
    (code / "gone").symlink_to("nowhere")
    (code / "logs").mkdir()
    found = scan([], str(code))
    assert set(found.files) == {"a.py", "copy.bin"}
    assert found.links == {"same.py": "a.py"}
    assert found.folders == {"logs"}
    assert found.left_out == ["dataset (a link to a folder outside)", "gone (a link to nothing)"]


@pytest.mark.parametrize("named", ["/", "~", ".."])
def test_root_and_home_are_never_sent(named: str, empty_home: Path) -> None:
    (empty_home / "inner").mkdir()
    where = str(empty_home if named != ".." else empty_home / "inner")
    with pytest.raises(UsageError, match="never sent"):
        scan([named], where)


def test_the_home_folder_is_not_sent_by_itself(empty_home: Path) -> None:
    assert plan_source([], cwd=str(empty_home)) is None


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"-s gone\.py: there is no such"):
        scan(["gone.py"], str(tmp_path))
    with pytest.raises(NotFoundError, match=r"-s \*\.py: no file fits"):
        scan(["*.py"], str(tmp_path))


def test_too_much_is_refused_with_what_weighs_most(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(bytes(2_000_000))
    make(tmp_path, "a.py")
    with pytest.raises(
        UsageError, match=r"2\.0 MB in 2 files, the limit is 1 MB; largest: big\.bin"
    ) as caught:
        check_limit(scan([], str(tmp_path)), 1)
    assert "--source-limit" in (caught.value.hint or "")


def test_sizes_are_shown_as_people_read_them() -> None:
    assert [show_size(size) for size in (0, 999, 1000, 12_345, 3_400_000, 5e12)] == [
        "0 B", "999 B", "1.0 kB", "12 kB", "3.4 MB", "5.0 TB",
    ]  # fmt: skip


def test_a_pattern_without_sense_is_named_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"x:2: the pattern '\[z-a\]'"):
        Rules(["ok", "[z-a]"], "x")


_letters = st.sampled_from("ab")
_patterns = st.lists(
    st.builds(
        lambda start, parts, end: start + "/".join(parts) + end,
        st.sampled_from(["", "/", "!", "!/"]),
        st.lists(
            st.sampled_from(["a", "b", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "\\a"]),
            min_size=1,
            max_size=3,
        ),
        st.sampled_from(["", "/"]),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here to compare with")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns=_patterns)
def test_patterns_mean_what_they_mean_to_git(
    patterns: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("repo")
    names = ["a", "b", "ab", "a.d/b", "b.d/a/b", "b.d/ab", "c/a.d/b/a"]
    make(root, *names)
    (root / ".gitignore").write_text("\n".join(patterns) + "\n")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=environment)
    shown = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-o", "--exclude-standard", "-z"],
        check=True, env=environment, capture_output=True, text=True,
    ).stdout  # fmt: skip
    kept = {name for name in shown.split("\0") if name}
    assert set(scan([], str(root)).files) == kept


def test_a_folder_that_cannot_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()

    def refused(path: str, **_: object) -> None:
        raise PermissionError if "locked" in path else FileNotFoundError

    monkeypatch.setattr("openpaisdk.storage.ignore.open", refused, raising=False)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(UsageError, match=r"locked cannot be read: permission denied") as caught:
        scan((), str(tmp_path))
    assert ".opaiignore" in (caught.value.hint or "")
