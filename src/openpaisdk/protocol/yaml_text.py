"""YAML to plain data through libyaml's node graph, which is kept so that every value can be found again."""

from __future__ import annotations

from typing import Any

import yaml

from openpaisdk.protocol.problems import DEEPEST, Path, Position, Problem, reject, too_deep
from openpaisdk.protocol.scalars import as_text, resolve

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML built without libyaml: the same calls, slower

    class _Parser(  # type: ignore[no-redef]
        yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer
    ):
        def __init__(self, text: str) -> None:
            yaml.reader.Reader.__init__(self, text)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)
            yaml.composer.Composer.__init__(self)


_PLAIN, _TEXT, _LIST, _MAPPING = "plain", "text", "list", "mapping"
_CORE = "tag:yaml.org,2002:"
# A hundred kilobytes of aliases can stand for gigabytes of JSON; the largest honest job has far fewer values.
_MOST_VALUES = 200_000

_REMEDIES = {
    "mapping values are not allowed": "put quotes around a text that contains `: `, or check the indentation",
    "cannot start any token": "indent with spaces, not tabs; quote a text that begins with @ or `",
    "did not find expected key": "check the indentation of this line and the one above",
    "could not find expected ':'": "a key needs a colon and a space after it",
    "undefined alias": "put quotes around a text that begins with *",
    "expected a single document": "put each job into a file of its own",
}


class _Composer(_Parser):
    """Composes nodes whose tags say only how a scalar was written; what it means is decided in `_Builder`."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _TEXT
        return _LIST if kind is yaml.SequenceNode else _MAPPING

    _depth = 0

    def descend_resolver(self, *_: Any) -> None:
        # libyaml's binding recurses in C: without a limit, a text of brackets ends the whole process.
        self._depth += 1
        if self._depth > DEEPEST:
            raise RecursionError

    def ascend_resolver(self) -> None:
        self._depth -= 1


class YamlMarks:
    """Where the values of one YAML text stand."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[int, dict[Any, tuple[Any, Any]]] = {}

    def value(self, path: Path) -> Position | None:
        found = self._walk(path)
        return _position(found[1]) if found else None

    def key(self, path: Path) -> Position | None:
        found = self._walk(path)
        return _position(found[0] or found[1]) if found else None

    def _walk(self, path: Path) -> tuple[Any, Any] | None:
        found: tuple[Any, Any] | None = (None, self._root) if self._root else None
        for step in path:
            if found is None:
                return None
            found = self._child(found[1], step)
        return found

    def _child(self, node: Any, step: str | int) -> tuple[Any, Any] | None:
        if isinstance(node, yaml.SequenceNode):
            inside = isinstance(step, int) and step < len(node.value)
            return (None, node.value[step]) if inside else None
        return self._entries(node).get(step) if isinstance(node, yaml.MappingNode) else None

    def _entries(self, node: Any) -> dict[Any, tuple[Any, Any]]:
        """Key -> its node and the node of the value, merged ones included; later keys win, as in the data."""
        if id(node) in self._known:
            return self._known[id(node)]
        found = self._known[id(node)] = {}
        merged: list[Any] = []
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                found[_key(key_node)] = key_node, value_node
                if key_node.value == "<<" and key_node.tag is _PLAIN:
                    merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
        for other in merged:
            if isinstance(other, yaml.MappingNode):
                for key, entry in self._entries(other).items():
                    found.setdefault(key, entry)
        return found


def parse(text: str, source: str) -> tuple[Any, YamlMarks, list[Problem]]:
    """Data, marks, and what is wrong though it can be read (a key twice, an unknown tag)."""
    try:
        root = _Composer(text).get_single_node()
        builder = _Builder(source)
        data = builder.value(root) if root else None
        if builder.has_aliases and _weight(data, {}) > _MOST_VALUES:
            builder.flaw(root, f"the aliases stand for more than {_MOST_VALUES} values", "size")
    except yaml.YAMLError as error:
        raise reject([_syntax_problem(error, text, source)]) from None
    except RecursionError:
        raise reject([too_deep(source)]) from None
    return data, YamlMarks(root), builder.flaws


class _Builder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.flaws: list[Problem] = []
        self.has_aliases = False
        self._steps: list[str | int] = []
        self._built: dict[int, Any] = {}
        self._open: set[int] = set()

    def flaw(self, node: Any, message: str, keyword: str) -> None:
        shown = node.value if isinstance(node.value, str) else None
        steps = tuple(self._steps)
        self.flaws.append(
            Problem(
                steps, message, keyword=keyword, value=shown, source=self.source, position=_position(node)
            )
        )

    def value(self, node: Any) -> Any:
        tag = node.tag
        if tag is _PLAIN:
            return resolve(node.value)
        if tag is _TEXT:
            return node.value
        if isinstance(node, yaml.ScalarNode):
            return self._tagged(node)
        return self._collection(node)

    def _collection(self, node: Any) -> Any:
        identity = id(node)
        if identity in self._built:
            self.has_aliases = True
            if identity in self._open:
                self.flaw(node, "this value contains itself", "alias")
                return None
            return self._built[identity]
        if node.tag not in (_LIST, _MAPPING, _CORE + "seq", _CORE + "map"):
            self.flaw(node, f"unknown tag {_short(node.tag)}", "tag")
        self._open.add(identity)
        built: Any
        if isinstance(node, yaml.SequenceNode):
            built = self._built[identity] = []
            for index, item in enumerate(node.value):
                self._steps.append(index)
                built.append(self.value(item))
                self._steps.pop()
        else:
            built = self._built[identity] = {}
            self._fill(built, node)
        self._open.discard(identity)
        return built

    def _fill(self, built: dict[str, Any], node: Any) -> None:
        merged: list[Any] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.flaw(key_node, "a key must be a plain text", "key")
                continue
            key = _key(key_node)
            if key == "<<" and key_node.tag is _PLAIN:
                merged.append(value_node)
                continue
            self._steps.append(key)
            if key in built:
                self.flaw(key_node, f"the key `{key}` stands here twice", "duplicate")
            built[key] = self.value(value_node)
            self._steps.pop()
        for value_node in merged:
            self._merge(built, value_node)

    def _merge(self, built: dict[str, Any], node: Any) -> None:
        value = self.value(node)
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                self.flaw(node, "`<<` needs a mapping to merge", "type")
                return
            for key, item in source.items():
                built.setdefault(key, item)

    def _tagged(self, node: Any) -> Any:
        kind = node.tag.removeprefix(_CORE)
        text = node.value
        value = resolve(text)
        if kind in ("str", "timestamp"):
            return text
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        wanted = {"int": int, "float": float, "bool": bool, "null": type(None)}.get(kind)
        if wanted is None:
            self.flaw(node, f"unknown tag {_short(node.tag)}", "tag")
        elif type(value) is not wanted:
            self.flaw(node, f"{text!r} cannot be read as {_short(node.tag)}", "tag")
        return value


def _key(node: Any) -> str:
    """Keys are texts, as in JavaScript: `1: x` is `"1": x`."""
    text: str = node.value
    return as_text(resolve(text)) if node.tag is _PLAIN else text


def _weight(value: Any, known: dict[int, int]) -> int:
    """How many values there are when every alias is written out."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = 1  # a value that contains itself is reported elsewhere
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_weight(item, known) for item in items)
    return known[id(value)]


def _position(node: Any) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_CORE)}" if tag.startswith(_CORE) else tag


def _syntax_problem(error: yaml.YAMLError, text: str, source: str) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        message = ", ".join(part for part in (error.problem, error.context) if part)
        position = (mark.line + 1, mark.column + 1) if mark else None
    elif isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        message = (
            f"the character U+{ord(text[error.position]):04X} is not allowed"
            if before != text
            else str(error)
        )
        position = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    else:
        message, position = str(error), None
    remedy = next((words for sign, words in _REMEDIES.items() if sign in message), None)
    return Problem(
        (),
        f"this is not valid YAML: {message}",
        keyword="syntax",
        suggestion=remedy,
        source=source,
        position=position,
    )
