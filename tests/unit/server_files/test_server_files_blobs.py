"""Code by content on the server: what is accepted, and what is swept away."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from openpaisdk.errors import ConflictError, NotFoundError, UsageError
from openpaisdk.server.files.blobs import EMPTY, BlobStore, lay_out, sweep_all
from openpaisdk.server.files.manifests import parse


def put(store: BlobStore, contents: bytes) -> str:
    digest = hashlib.sha256(contents).hexdigest()
    blob = store.receive(digest)
    blob.write([contents])
    blob.commit()
    return digest


def add(store: BlobStore, entries: list[dict[str, object]]) -> str:
    text = json.dumps(entries).encode()
    digest = hashlib.sha256(text).hexdigest()
    store.add_manifest(digest, text)
    return digest


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path, "ann")


def test_contents_that_are_not_what_was_announced_are_refused(store: BlobStore) -> None:
    blob = store.receive("0" * 64)
    blob.write([b"something else"])
    with pytest.raises(UsageError, match="have the SHA-256"):
        blob.commit()
    blob.discard()
    assert store.missing(["0" * 64]) == ["0" * 64]
    assert [path for path in store.blobs.rglob("*") if path.is_file()] == []


def test_a_manifest_needs_its_blobs(store: BlobStore) -> None:
    with pytest.raises(ConflictError, match="1 blobs of the manifest are missing"):
        add(store, [{"path": "a", "sha256": "1" * 64, "size": 1}])


@pytest.mark.parametrize(
    "entries",
    [
        [{"path": "/etc/passwd", "sha256": EMPTY}],
        [{"path": "../x", "sha256": EMPTY}],
        [{"path": "a//b", "sha256": EMPTY}],
        [{"path": "", "sha256": EMPTY}],
        [{"path": "a\0b", "sha256": EMPTY}],
        [{"path": "a", "sha256": EMPTY}, {"path": "a", "sha256": EMPTY}],
        [{"path": "a", "sha256": EMPTY}, {"path": "a/b", "sha256": EMPTY}],
        [{"path": "a", "link": "b"}, {"path": "a/x", "sha256": EMPTY}],
        [{"path": "a", "link": "/etc/passwd"}],
        [{"path": "d/a", "link": "../../x"}],
        [{"path": "a", "sha256": "xyz"}],
        [{"path": "a", "sha256": EMPTY, "size": -1}],
        {"path": "a"},
    ],
)
def test_trees_that_lead_outside_or_clash_are_refused(entries: object) -> None:
    with pytest.raises(UsageError):
        parse(json.dumps(entries).encode())


def test_a_link_does_not_lead_writing_outside(store: BlobStore, tmp_path: Path) -> None:
    manifest = add(store, [{"path": "a", "sha256": put(store, b"new"), "size": 3}])
    outside = tmp_path / "outside"
    outside.write_text("safe")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a").symlink_to(outside)
    lay_out(tmp_path, manifest, tmp_path / "work", user="ann")
    assert outside.read_text() == "safe"
    assert (tmp_path / "work/a").read_text() == "new"


def test_a_blob_cut_short_by_a_power_cut_is_asked_for_again(store: BlobStore, tmp_path: Path) -> None:
    digest = put(store, b"contents")
    manifest = add(store, [{"path": "a", "sha256": digest, "size": 8}])
    path = Path(store.path(digest))
    path.chmod(0o644)
    path.write_bytes(b"")
    assert store.missing([digest]) == [digest]
    with pytest.raises(NotFoundError, match="damaged"):
        lay_out(tmp_path, manifest, tmp_path / "work", user="ann")


def test_what_nobody_asked_for_is_swept(store: BlobStore, tmp_path: Path) -> None:
    old, kept, recent = put(store, b"old"), put(store, b"kept"), put(store, b"recent")
    gone = add(store, [{"path": "a", "sha256": old, "size": 3}])
    needed = add(store, [{"path": "a", "sha256": kept, "size": 4}])
    long_ago = time.time() - 40 * 86400
    for path in (*map(Path, map(store.path, (old, kept))), store.manifests / gone, store.manifests / needed):
        os.utime(path, (long_ago, long_ago))
    assert sweep_all(tmp_path, days=30, keep=[needed]) == 2
    assert store.missing([old, kept, recent, gone, needed]) == [old, gone]


def test_names_that_are_no_digest_or_user_are_refused(tmp_path: Path, store: BlobStore) -> None:
    for name in ("../x", "A" * 64, "1" * 63, ""):
        with pytest.raises(UsageError):
            store.missing([name])
    for user in ("", "..", "a/b"):
        with pytest.raises(UsageError):
            BlobStore(tmp_path, user)
