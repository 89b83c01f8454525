"""A job's part of a workspace on WebHDFS: code by content, outputs, and checkpoints that outlive a node."""

import hashlib
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from .hdfs import Hdfs, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

AT_ONCE = 8
MIRROR_SECONDS = 1.0
CHECKPOINTS = ".checkpoints"


def say(text: str) -> None:
    """A line of ours in the log of the task."""
    sys.stderr.write("openpaisdk: {}\n".format(text))
    sys.stderr.flush()


def fetch_code(hdfs: Hdfs, root: str, manifest: str, folder: str) -> int:
    """Make the tree behind a manifest below a folder; how many files it has."""
    blobs = root.rstrip("/") + "/.blobs/"
    text = hdfs.text(blobs + manifest)
    if hashlib.sha256(text).hexdigest() != manifest:
        raise StorageError("the list of the code's files is damaged: {}{}".format(blobs, manifest))
    entries = json.loads(text.decode("utf-8"))
    for entry in entries:
        require_inside(entry["path"])
        place = entry["path"] if entry.get("folder") else os.path.dirname(entry["path"])
        os.makedirs(os.path.join(folder, place), exist_ok=True)
    files = [entry for entry in entries if entry.get("sha256")]

    def fetch(entry: "dict[str, object]") -> None:
        target = os.path.join(folder, str(entry["path"]))
        hdfs.read(blobs + str(entry["sha256"]), target)
        if digest_of(target) != entry["sha256"]:
            raise StorageError("{} arrived damaged".format(entry["path"]))
        os.chmod(target, 0o755 if int(str(entry.get("mode", 0))) & 0o100 else 0o644)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(fetch, files))
    for entry in entries:
        if entry.get("link"):
            os.symlink(entry["link"], os.path.join(folder, entry["path"]))
    return len(files)


def require_inside(path: str) -> None:
    if path.startswith("/") or ".." in path.split("/"):
        raise StorageError("the code holds the path {!r}, which leads out of its folder".format(path))


def digest_of(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            found.update(block)
    return found.hexdigest()


def send_files(hdfs: Hdfs, files: "dict[str, str]", target: str) -> "list[str]":
    """Copy files (name -> path here) below a folder there; in words what could not be copied."""

    def send(item: "tuple[str, str]") -> "str | None":
        name, path = item
        try:
            hdfs.write(path, target + "/" + name.replace(os.sep, "/"))
        except (StorageError, OSError) as error:
            return "{}: {}".format(name, error)
        return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [problem for problem in pool.map(send, sorted(files.items())) if problem]


def files_below(folder: str, skip: str = "") -> "Iterator[tuple[str, str]]":
    """(name, path) of every file below a folder, links not followed."""
    for place, folders, names in os.walk(folder):
        if place == folder and skip in folders:
            folders.remove(skip)
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, folder), path


class Mirror:
    """Sends each checkpoint that is published here to the workspace, while the program goes on."""

    def __init__(self, hdfs: Hdfs, here: str, there: str, keep: int = 2) -> None:
        self.here = here
        self.there = there
        self._hdfs = hdfs
        self._keep = keep
        self._last = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._said = False

    def fetch(self) -> "int | None":
        """Bring the newest checkpoint of an earlier attempt here; its number, or nothing."""
        found = self._hdfs.names(self.there)
        numbers = sorted(name for name in found if name.isdigit() and found[name])
        if not numbers:
            return None
        staging = os.path.join(self.here, ".staging-" + numbers[-1])
        self._fetch_tree(self.there + "/" + numbers[-1], staging)
        os.rename(staging, os.path.join(self.here, numbers[-1]))
        self._last = int(numbers[-1])
        return self._last

    def _fetch_tree(self, there: str, here: str) -> None:
        os.makedirs(here, exist_ok=True)
        for name, folder in self._hdfs.names(there).items():
            if folder:
                self._fetch_tree(there + "/" + name, os.path.join(here, name))
            else:
                self._hdfs.read(there + "/" + name, os.path.join(here, name))

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> "list[str]":
        """Send what is left; in words what could not be sent."""
        self._over.set()
        self._thread.join()
        return self.send_new()

    def _watch(self) -> None:
        while not self._over.wait(MIRROR_SECONDS):
            problems = self.send_new()
            if problems and not self._said:
                self._said = True
                say("a checkpoint could not be kept: {}; trying again".format(problems[0]))

    def send_new(self) -> "list[str]":
        """Send the newest checkpoint that is not there yet; older ones were overtaken."""
        numbers = sorted(int(name) for name in _names(self.here) if name.isdigit())
        if not numbers or numbers[-1] <= self._last:
            return []
        number = "{:06d}".format(numbers[-1])
        staging = "{}/.staging-{}".format(self.there, number)
        problems = send_files(self._hdfs, dict(files_below(os.path.join(self.here, number))), staging)
        try:
            if not problems:
                self._hdfs.rename(staging, "{}/{}".format(self.there, number))
                self._last = numbers[-1]
                self._prune()
        except StorageError as error:
            problems = [str(error)]
        return problems

    def _prune(self) -> None:
        known = sorted(name for name in self._hdfs.names(self.there) if name.isdigit())
        for name in known[: -self._keep]:
            self._hdfs.remove(self.there + "/" + name)


def _names(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)
    except OSError:
        return []
