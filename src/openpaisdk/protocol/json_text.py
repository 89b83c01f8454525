"""JSON to plain data with the standard library; a second pass finds positions when something is wrong."""

from __future__ import annotations

import json
import re

from openpaisdk.protocol.problems import DEEPEST, Path, Position, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s,\[\]{}:"]+)')


class JsonMarks:
    """Where the values of one JSON text stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: _Node | None = None

    def value(self, path: Path) -> Position | None:
        found = self._walk(path)
        return self._position(found.start) if found else None

    def key(self, path: Path) -> Position | None:
        found = self._walk(path)
        return self._position(found.start if found.key_start is None else found.key_start) if found else None

    def duplicates(self) -> list[tuple[Path, Position]]:
        """Every key that stands in its mapping a second time."""
        return [(path, self._position(start)) for path, start in self._scanned().repeated(())]

    def _scanned(self) -> _Node:
        if self._root is None:
            self._root, _ = _scan(self._text, 0)
        return self._root

    def _walk(self, path: Path) -> _Node | None:
        node: _Node | None = self._scanned()
        for step in path:
            if node is None:
                return None
            node = node.children.get(step)
        return node

    def _position(self, offset: int) -> Position:
        return self._text.count("\n", 0, offset) + 1, offset - self._text.rfind("\n", 0, offset)


class _Node:
    __slots__ = ("again", "children", "key_start", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.key_start: int | None = None
        self.children: dict[str | int, _Node] = {}
        self.again: list[tuple[str, int]] = []

    def repeated(self, path: Path) -> list[tuple[Path, int]]:
        found: list[tuple[Path, int]] = [((*path, key), start) for key, start in self.again]
        for step, child in self.children.items():
            found += child.repeated((*path, step))
        return found


def parse(text: str, source: str) -> tuple[Any, JsonMarks, list[Problem]]:
    """Data, marks and repeated keys; ValueError where it is not JSON, RecursionError where it is too deep."""
    repeated = False

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) < len(pairs)
        return found

    data = json.loads(text, object_pairs_hook=mapping)
    if _is_too_deep(data):
        raise RecursionError
    marks = JsonMarks(text)
    flaws = [
        Problem(
            path,
            f"the key `{path[-1]}` stands here twice",
            keyword="duplicate",
            value=path[-1],
            source=source,
            position=position,
        )
        for path, position in (marks.duplicates() if repeated else ())
    ]
    return data, marks, flaws


def _is_too_deep(data: Any) -> bool:
    level = [data]
    for _ in range(DEEPEST + 1):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def syntax_problem(error: json.JSONDecodeError, source: str) -> Problem:
    return Problem(
        (),
        f"this is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}",
        keyword="syntax",
        source=source,
        position=(error.lineno, error.colno),
    )


def _next(text: str, offset: int) -> tuple[str, int, int]:
    found = _TOKEN.match(text, offset)
    assert found is not None, "scanned only after the text was parsed"
    return found[1], found.start(1), found.end()


def _scan(text: str, offset: int) -> tuple[_Node, int]:
    """The node that begins at or after the offset, and the offset behind it."""
    word, start, offset = _next(text, offset)
    node = _Node(start)
    if word == "[":
        return node, _scan_list(text, offset, node)
    if word == "{":
        return node, _scan_mapping(text, offset, node)
    return node, offset


def _scan_list(text: str, offset: int, node: _Node) -> int:
    word, _, after = _next(text, offset)
    while word != "]":
        child, offset = _scan(text, offset)
        node.children[len(node.children)] = child
        word, _, after = _next(text, offset)
        offset = after
    return after


def _scan_mapping(text: str, offset: int, node: _Node) -> int:
    word, start, after = _next(text, offset)
    while word != "}":
        if word == ",":
            word, start, after = _next(text, after)
        key = json.loads(word)
        _, _, after = _next(text, after)
        child, after = _scan(text, after)
        child.key_start = start
        if key in node.children:
            node.again.append((key, start))
        node.children[key] = child
        word, start, after = _next(text, after)
    return after
