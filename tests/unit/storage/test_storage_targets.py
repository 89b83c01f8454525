"""Where files go and what cannot go: folders that end in a slash, pipes, names that are not text."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.engine import Engine
from openpaisdk.errors import ConflictError, OpenPAIError, UsageError


def opai(*words: str) -> Any:
    return Engine().process(list(words))


def names(path: str) -> list[str]:
    return [row["name"] for row in opai("storage", "list", path)]


def refused(kind: type[OpenPAIError], said: str, *words: str) -> OpenPAIError:
    with pytest.raises(kind, match=said) as caught:
        opai("storage", *words)
    assert caught.value.hint
    return caught.value


def test_a_target_with_a_slash_at_its_end_is_a_folder(here: Path) -> None:
    (here / "a.txt").write_text("a")
    opai("storage", "upload", "a.txt", "new/")
    assert names("new") == ["a.txt"]
    opai("storage", "upload", "a.txt", f"file://{here}/below/new/")
    assert (here / "below/new/a.txt").read_text() == "a"
    opai("storage", "upload", "a.txt", f"local://{here}/other/")
    assert (here / "other/a.txt").read_text() == "a"
    opai("storage", "download", "new/a.txt", "out/")
    assert (here / "out/a.txt").read_text() == "a"
    assert opai("storage", "download", "new/a.txt", "out/")["skipped"] == 1


def test_a_file_where_a_folder_is_wanted_is_said(here: Path) -> None:
    (here / "tree").mkdir()
    (here / "tree/a.txt").write_text("a")
    opai("storage", "upload", "tree", "tree")
    (here / "file").write_text("x")
    refused(ConflictError, "^file is a file, not a folder$", "download", "tree", "file")
    refused(ConflictError, "^file is a file, not a folder$", "download", "tree/a.txt", "file/")
    refused(ConflictError, "is a file, not a folder", "upload", "tree/a.txt", f"file://{here}/file/")
    assert (here / "file").read_text() == "x"


def test_an_empty_folder_is_deleted_without_more_words(here: Path) -> None:
    (here / "empty").mkdir()
    opai("storage", "delete", f"file://{here}/empty")
    assert not (here / "empty").exists()
    opai("storage", "mkdir", "empty")
    opai("storage", "delete", "empty")
    (here / "full/x").mkdir(parents=True)
    refused(ConflictError, "not empty", "delete", f"file://{here}/full")


def test_pipes_sockets_and_devices_are_not_sent(here: Path) -> None:
    (here / "tree").mkdir()
    (here / "tree/a.txt").write_text("a")
    os.mkfifo(here / "tree/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("tree/socket")
        refused(UsageError, "tree/pipe is a pipe, not a file", "upload", "tree/pipe", "x")
        refused(UsageError, "tree/socket is a socket, not a file", "upload", "tree/socket", "x")
        refused(UsageError, "/dev/null is a device, not a file", "upload", "/dev/null", "x")
        assert opai("storage", "upload", "tree", "tree")["copied"] == 1
    assert names("tree") == ["a.txt"]


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS keeps no such names")
def test_names_that_are_not_utf8_get_a_sentence(here: Path) -> None:
    bad = os.fsdecode(b"bad\xff.txt")
    (here / "tree").mkdir()
    (here / "tree" / bad).write_text("a")
    said = r"tree/bad\\udcff\.txt': the name is not in UTF-8"
    assert "rename" in str(refused(UsageError, said, "upload", "tree", "x").hint)
    refused(UsageError, said, "upload", f"tree/{bad}", "x/")
    refused(UsageError, "not in UTF-8", "list", bad)
    opai("storage", "upload", f"tree/{bad}", "good.txt")
    opai("storage", "download", "good.txt", bad)
    assert (here / bad).read_text() == "a"
