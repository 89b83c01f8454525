"""What stays at home: `.gitignore` and `.opaiignore` as git reads them, and what is never worth sending."""

# pathlib costs too much where ten thousand files are looked at for every submission.
# ruff: noqa: PTH110, PTH120, PTH123

from __future__ import annotations

import os
import re

from openpaisdk.errors import UsageError

_PRIVATE_FOLDERS = frozenset({".git", ".hg", ".svn", ".bzr", ".openpai"})
_NEVER_FOLDERS = frozenset(
    [
        ".venv",
        ".tox",
        ".nox",
        ".cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".checkpoints",
        ".idea",
        ".eggs",
        "__pycache__",
        "__pypackages__",
        "node_modules",
    ]
)

_NEVER_FILES = frozenset({".DS_Store", "Thumbs.db"})
_NEVER_ENDINGS = (".pyc", ".pyo", ".opai-part")
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")


class Rules:
    """The patterns of one file; paths are given relative to its folder, with `/`."""

    __slots__ = ("_any", "_patterns")

    def __init__(self, lines: list[str], source: str = "<rules>") -> None:
        self._patterns: list[tuple[re.Pattern[str], bool, bool]] = []
        texts = []
        for number, line in enumerate(lines, 1):
            found = _translate(line)
            if found is None:
                continue
            text, negated, folders_only = found
            try:
                self._patterns.append((re.compile(text), negated, folders_only))
            except re.error as error:
                raise UsageError(f"{source}:{number}: the pattern {line!r} makes no sense: {error}") from None
            texts.append(text)
        self._any = re.compile("|".join(f"(?:{text})" for text in texts)) if texts else None

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True to leave the path out, False to keep it, None where no pattern fits. The last one counts."""
        if self._any is None or self._any.match(path) is None:
            return None
        for pattern, negated, folders_only in reversed(self._patterns):
            if (is_folder or not folders_only) and pattern.match(path):
                return not negated
        return None


class Ignoring:
    """The rules in force in one folder: its own and those above; `.opaiignore` decides, then git, then habit.

    Only `.opaiignore` can ask for what is never worth sending (`!node_modules`), and nothing for `.git`.
    """

    __slots__ = ("_above", "_git", "_name", "_ours")

    def __init__(self, folder: str, *, above: Ignoring | None = None, name: str = "") -> None:
        self._above = above
        self._name = name
        self._git = _rules(f"{folder}/.gitignore")
        self._ours = _rules(f"{folder}/.opaiignore")

    def below(self, folder: str, name: str) -> Ignoring:
        """The rules in force in a folder of this one."""
        return Ignoring(folder, above=self, name=name)

    def leaves_out(self, name: str, is_folder: bool) -> bool:
        """Whether an entry of this folder stays at home."""
        if is_folder and name in _PRIVATE_FOLDERS:
            return True
        path: str = name
        level: Ignoring | None = self
        git: bool | None = None
        while level is not None:
            if level._ours is not None:
                ours = level._ours.verdict(path, is_folder)
                if ours is not None:
                    return ours
            if git is None and level._git is not None:
                git = level._git.verdict(path, is_folder)
            path, level = f"{level._name}/{path}", level._above
        if git:
            return True
        if is_folder:
            return name in _NEVER_FOLDERS
        return name in _NEVER_FILES or name.endswith(_NEVER_ENDINGS)


def rules_for(folder: str) -> Ignoring:
    """The rules in force in a folder, with those of its repository above it."""
    chain = [folder]
    at = folder
    while not os.path.exists(f"{at}/.git"):
        parent = os.path.dirname(at)
        if parent == at:
            return Ignoring(folder)
        chain.append(parent)
        at = parent
    found: Ignoring | None = None
    for level in reversed(chain):
        found = Ignoring(level, above=found, name=os.path.basename(level) if found else "")  # noqa: PTH119
    assert found is not None
    return found


def is_environment(folder: str) -> bool:
    """Whether a folder is a virtual or conda environment."""
    return any(os.path.exists(f"{folder}/{mark}") for mark in _ENVIRONMENT_MARKS)


def _rules(path: str) -> Rules | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return Rules(file.read().lstrip("\ufeff").splitlines(), path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except PermissionError:
        folder = os.path.dirname(path)
        raise UsageError(
            f"{path if os.access(folder, os.X_OK) else folder} cannot be read: permission denied",
            hint="name the folder in the .opaiignore above it to leave it out",
        ) from None


def _translate(line: str) -> tuple[str, bool, bool] | None:
    """A git pattern as a regular expression, with whether it negates and whether it means folders only."""
    text = re.sub(r"(?<!\\)\s+$", "", line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    if negated:
        text = text[1:]
    folders_only = text.endswith("/")
    if folders_only:
        text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    text = text.removeprefix("/")
    found = "" if anchored else "(?:.*/)?"
    at = 0
    while at < len(text):
        piece, at = _piece(text, at)
        found += piece
    return found + r"\Z", negated, folders_only


def _piece(text: str, at: int) -> tuple[str, int]:
    letter = text[at]
    if letter == "*":
        end = at
        while end < len(text) and text[end] == "*":
            end += 1
        before = at == 0 or text[at - 1] == "/"
        if end - at >= 2 and before and end < len(text) and text[end] == "/":
            return "(?:.*/)?", end + 1
        if end - at >= 2 and before and end == len(text):
            return ".+", end
        return "[^/]*", end
    if letter == "?":
        return "[^/]", at + 1
    if letter == "[":
        return _bracket(text, at)
    if letter == "\\" and at + 1 < len(text):
        return re.escape(text[at + 1]), at + 2
    return re.escape(letter), at + 1


def _bracket(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    if end < len(text) and text[end] in "!^":
        end += 1
    if end < len(text) and text[end] == "]":
        end += 1
    while end < len(text) and text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        # git matches nothing with an unclosed bracket.
        return r"(?!)", len(text)
    inside = text[at + 1 : end]
    negated = inside[:1] in ("!", "^")
    body = inside[1:] if negated else inside
    body = re.sub(r"\\(.)", lambda found: "\\" + found[1], body).replace("[", r"\[")
    if body.startswith("]"):
        body = "\\" + body
    return f"(?!/)[{'^' if negated else ''}{body}]", end + 1
