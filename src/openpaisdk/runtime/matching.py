"""Which files a task wants saved: patterns below its working folder, and never a file from outside it."""

import os
import stat
from fnmatch import fnmatchcase
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_FILES = 100000
NO_FILE = "{}: no file fits"


def matches(patterns: "Sequence[str]", work: str) -> "tuple[dict[str, str], list[str]]":
    """Name as matched -> path without links, both from the working folder on; and in words what is wrong."""
    found: "dict[str, str]" = {}
    problems: "list[str]" = []
    root = os.path.realpath(work)
    for pattern in patterns:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if pattern.startswith("/") or ".." in parts or not parts:
            problems.append("{}: it leads out of the working folder".format(pattern))
            continue
        fitting = dict(islice(_expand(root, "", parts), MOST_FILES))
        if not fitting:
            problems.append(NO_FILE.format(pattern))
        elif len(fitting) == MOST_FILES:
            problems.append("{}: only the first {:,} files that fit are saved".format(pattern, MOST_FILES))
        for name, real in fitting.items():
            if real:
                found[name] = real
            else:
                problems.append("{}: it is a link that leads out of the working folder".format(name))
    return found, problems


def unmatched(patterns: "Sequence[str]", problems: "Sequence[str]") -> "list[str]":
    """The lines that tell of patterns which no file fits, for the log of the task."""
    missed = [pattern for pattern in patterns if NO_FILE.format(pattern) in problems]
    return ["opai: --save {!r} matched no file\n".format(pattern) for pattern in missed]


def _expand(root: str, name: str, parts: "list[str]") -> "Iterator[tuple[str, str]]":
    """The files that fit the rest of a pattern from `name` on; a folder that fits means all that is in it.

    A file that leads out has an empty path.
    """
    here = _inside(root, name)
    if here is None:
        if not parts:
            yield name, ""
        return
    full = os.path.join(root, here)
    if not parts or parts == ["**"]:
        for item in _tree(root, name):
            yield item
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        for item in _expand(root, name, rest):
            yield item
    for inner in _names(full):
        path = name + "/" + inner if name else inner
        if first == "**":
            deeper = parts if _is_real_folder(full, inner) else None
        else:
            fits = fnmatchcase(inner, first) and (not inner.startswith(".") or first.startswith("."))
            deeper = rest if fits else None
        if deeper is not None:
            for item in _expand(root, path, deeper):
                yield item


def _tree(root: str, name: str) -> "Iterator[tuple[str, str]]":
    here = _inside(root, name)
    if here is None:
        yield name, ""
        return
    full = os.path.join(root, here)
    if os.path.isfile(full):
        yield name, here
    for inner in _names(full):
        if _is_real_folder(full, inner) or not os.path.isdir(os.path.join(full, inner)):
            for item in _tree(root, name + "/" + inner if name else inner):
                yield item


def _is_real_folder(folder: str, name: str) -> bool:
    """A link would lead to the same files again and again; hidden folders hold packages and caches."""
    try:
        mode = os.lstat(os.path.join(folder, name)).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and not name.startswith(".")


def _names(folder: str) -> "list[str]":
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _inside(root: str, path: str) -> "str | None":
    """The path without links, None where it leads out of the working folder."""
    real = os.path.realpath(os.path.join(root, path))
    if real == root:
        return ""
    return real[len(root) + 1 :] if real.startswith(root + os.sep) else None
