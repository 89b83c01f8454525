"""What a task leaves behind is kept by pattern, whole, and never from outside its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openpaisdk.server import saving
from openpaisdk.server.files.usage import Quota
from openpaisdk.server.saving import Saved, describe, wanted_by


class Task:
    """A working folder and the file area of a server."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "task" / "work"
        self.files = folder / "files"
        self.home = self.files / "user" / "ann"
        self.output = self.home / "jobs" / "train" / "output"
        self.work.mkdir(parents=True)
        self.home.mkdir(parents=True)

    def write(self, name: str, text: str = "x") -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def save(self, *patterns: str, quota: int = 0) -> Saved:
        return saving.save(patterns, self.work, self.files, self.output, quota=Quota(quota), home=self.home)

    def kept(self) -> list[str]:
        return sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file())


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("models/*.pt", ["models/a.pt"]),
        ("models", ["models/a.pt", "models/deep/b.pt", "models/deep/note.txt"]),
        ("models/", ["models/a.pt", "models/deep/b.pt", "models/deep/note.txt"]),
        ("models/**", ["models/a.pt", "models/deep/b.pt", "models/deep/note.txt"]),
        ("**/*.pt", ["models/a.pt", "models/deep/b.pt", "top.pt"]),
        ("./top.pt", ["top.pt"]),
        ("*/deep/?.pt", ["models/deep/b.pt"]),
        ("[tx]op.pt", ["top.pt"]),
        (".hidden", [".hidden"]),
        ("*", ["models/a.pt", "models/deep/b.pt", "models/deep/note.txt", "top.pt"]),
    ],
)
def test_patterns(task: Task, pattern: str, kept: list[str]) -> None:
    for name in (
        "models/a.pt",
        "models/deep/b.pt",
        "models/deep/note.txt",
        "top.pt",
        ".hidden",
        ".packages/x.pt",
    ):
        task.write(name, name)
    saved = task.save(pattern)
    assert task.kept() == kept
    assert (saved.files, saved.problems) == (len(kept), ())
    assert all((task.output / name).read_text() == name for name in kept)


def test_a_later_attempt_replaces_what_an_earlier_one_left(task: Task) -> None:
    model = task.write("model.pt", "first")
    os.utime(model, (1000, 1000))
    task.save("model.pt")
    assert (task.output / "model.pt").stat().st_mtime == 1000
    task.write("model.pt", "second")
    task.save("model.pt")
    assert (task.output / "model.pt").read_text() == "second"
    assert task.kept() == ["model.pt"]


def test_links_are_followed_only_inside(task: Task, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    task.write("epoch3.pt", "weights")
    (task.work / "latest.pt").symlink_to("epoch3.pt")
    (task.work / "evil.pt").symlink_to(secret / "key")
    (task.work / "evil").symlink_to(secret)
    (task.work / "loop").symlink_to(".")
    saved = task.save("**/*.pt", "evil/key", "loop/*.pt")
    assert task.kept() == ["epoch3.pt", "latest.pt", "loop/epoch3.pt", "loop/latest.pt"]
    assert (task.output / "latest.pt").read_text() == "weights"
    assert "evil.pt: it is a link that leads out of the working folder" in saved.problems
    assert "evil/key: no file fits" in saved.problems


def test_an_output_folder_that_became_a_link_is_not_written_through(task: Task, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    task.output.parent.mkdir(parents=True)
    task.output.symlink_to(elsewhere)
    task.write("model.pt")
    saved = task.save("model.pt")
    assert saved.files == 0 and saved.problems[0].startswith("model.pt: ")
    assert list(elsewhere.iterdir()) == []


def test_a_working_folder_that_became_a_link_is_not_read_through(task: Task, tmp_path: Path) -> None:
    task.work.rmdir()
    task.work.symlink_to(tmp_path)
    assert task.save("*").problems[0].startswith("the working folder cannot be read")


def test_pipes_and_devices_are_left_alone(task: Task) -> None:
    os.mkfifo(task.work / "pipe")
    assert task.save("pipe") == Saved(0, 0, ("pipe: no file fits",))


@pytest.mark.parametrize("pattern", ["../x", "/etc/passwd", "a/../../x", "", "."])
def test_patterns_that_climb_are_refused(task: Task, pattern: str) -> None:
    assert task.save(pattern).problems == (f"{pattern}: it leads out of the working folder",)


def test_what_does_not_fit_into_the_quota_is_told_and_the_rest_kept(task: Task) -> None:
    task.write("big.pt", "x" * 5000)
    task.write("small.pt", "x" * 10)
    saved = task.save("*.pt", quota=1000)
    assert task.kept() == ["small.pt"]
    kind, reason, text = describe(saved)
    assert (kind, reason) == ("Warning", "OutputsNotSaved")
    assert text.startswith("1 file, 10 bytes, kept as outputs; not kept: big.pt: 5,000 bytes more do not fit")


def test_a_full_disk_leaves_no_half_file(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    task.write("a.pt", "old")
    task.save("a.pt")
    task.write("a.pt", "new")
    task.write("b.pt", "new")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving.os, "write", full)
    saved = task.save("*.pt")
    monkeypatch.undo()
    assert saved.problems == ("a.pt: No space left on device",)
    assert task.kept() == ["a.pt"] and (task.output / "a.pt").read_text() == "old"


def test_names_that_are_not_text_do_not_break_the_event(task: Task) -> None:
    name = os.fsdecode(b"caf\xe9.pt")
    task.write(name)
    task.output.parent.mkdir(parents=True)
    task.output.write_text("in the way")
    describe(task.save("*.pt"))[2].encode("utf-8")


def ended(folder: Path, code: int = 0) -> Path:
    (folder / "exit").write_text(f"{code} 0\n")
    return folder


def test_the_log_is_told_once_even_by_two_servers(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text("warn")
    for _ in range(2):
        saving.tell(ended(tmp_path), ["opai: a\n", "opai: b\n"])
    assert (tmp_path / "stderr").read_text() == "warn\nopai: a\nopai: b\n"


def test_a_task_that_failed_or_whose_end_is_unknown_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text("")
    saving.tell(tmp_path, ["opai: a\n"])
    saving.tell(ended(tmp_path, 3), ["opai: a\n"])
    assert (tmp_path / "stderr").read_text() == ""


def test_a_log_that_became_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "stderr").symlink_to("elsewhere")
    saving.tell(ended(tmp_path), ["opai: a\n"])
    assert (tmp_path / "elsewhere").read_text() == ""


def test_folders_of_their_own_only_for_several_tasks() -> None:
    role = {"resourcePerInstance": {"gpu": 0}, "instances": 1}
    ours = {"openpaisdk": {"save": ["a", 3, "b"]}}
    assert wanted_by({"taskRoles": {"w": role}, "extras": ours}) == (("a", "b"), False)
    assert wanted_by({"taskRoles": {"w": {**role, "instances": 2}}, "extras": ours}) == (("a", "b"), True)
    assert wanted_by({"taskRoles": {"w": role}, "extras": {"openpaisdk": {"save": "a"}}}) == ((), False)


names = st.text(st.sampled_from("ab.*?[]/"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    patterns=st.lists(names, min_size=1, max_size=3),
    files=st.lists(st.from_regex(r"[ab.]{1,2}(/[ab]{1,2}){0,2}", fullmatch=True)),
)
def test_nothing_from_outside_whatever_the_patterns(
    tmp_path_factory: pytest.TempPathFactory, patterns: list[str], files: list[str]
) -> None:
    task = Task(tmp_path_factory.mktemp("any"))
    (task.work.parent / "outside").write_text("secret")
    for name in files:
        if not {".", ".."} & set(name.split("/")):
            try:
                task.write(name, "inside")
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue
    task.save(*patterns)
    inside = {str(path.relative_to(task.work)) for path in task.work.rglob("*")}
    assert set(task.kept()) <= inside
