"""Finding the endpoint of a path: a tree of segments that minds neither case nor a trailing slash."""

from __future__ import annotations

from typing import Generic, TypeVar
from urllib.parse import unquote

T = TypeVar("T")


def split_path(raw: str) -> list[str]:
    """Segments of a still percent-encoded path, each decoded on its own so that %2F separates nothing."""
    return [unquote(part) if "%" in part else part for part in raw.split("/") if part]


class _Node(Generic[T]):
    __slots__ = ("fixed", "leaves", "rest", "variable")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[T]] = {}
        self.variable: _Node[T] | None = None
        self.leaves: dict[str, tuple[T, tuple[str, ...]]] = {}
        self.rest: dict[str, tuple[T, tuple[str, ...]]] = {}


class Tree(Generic[T]):
    """Paths such as `/api/v2/jobs/{job}/config`; `{name:path}` at the end takes all that is left."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def add(self, method: str, path: str, target: T) -> None:
        """Enter one path; the same method and path twice is a mistake in the program."""
        node, names = self._root, []
        leaves = None
        for part in [part for part in path.split("/") if part]:
            if part.startswith("{") and part.endswith(":path}"):
                names.append(part[1:-6])
                leaves = node.rest
                break
            if part.startswith("{"):
                names.append(part[1:-1])
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.fixed.setdefault(part.lower(), _Node())
        if leaves is None:
            leaves = node.leaves
        if method in leaves:
            raise ValueError(f"{method} {path} is declared twice")
        leaves[method] = (target, tuple(names))

    def find(self, method: str, parts: list[str]) -> tuple[T, dict[str, str]] | None:
        """The target of a path with its parameters, fixed segments before parameters."""
        values: list[str] = []
        found = self._search(self._root, method, parts, 0, values)
        if found is None:
            return None
        target, names = found
        return target, dict(zip(names, values))

    def _search(
        self, node: _Node[T], method: str, parts: list[str], depth: int, values: list[str]
    ) -> tuple[T, tuple[str, ...]] | None:
        if depth == len(parts):
            return _choose(node.leaves, method)
        part = parts[depth]
        below = node.fixed.get(part.lower())
        if below is not None:
            found = self._search(below, method, parts, depth + 1, values)
            if found is not None:
                return found
        if node.variable is not None:
            values.append(part)
            found = self._search(node.variable, method, parts, depth + 1, values)
            if found is not None:
                return found
            values.pop()
        found = _choose(node.rest, method)
        if found is not None:
            values.append("/".join(parts[depth:]))
        return found


def _choose(leaves: dict[str, tuple[T, tuple[str, ...]]], method: str) -> tuple[T, tuple[str, ...]] | None:
    found = leaves.get(method)
    if found is None and method == "HEAD":
        found = leaves.get("GET")
    return found or leaves.get("*")
