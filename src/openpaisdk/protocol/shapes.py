"""The few shapes that a job spec is made of; each checks one value and reports all that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from openpaisdk.protocol.document import Document
from openpaisdk.protocol.problems import MASK, Path, Problem, did_you_mean, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Shape(Protocol):
        """Reports all that is wrong with a value; the path is for the report only."""

        def check(self, value: Any, at: Path, report: Report) -> None: ...


_MOST_SUGGESTIONS = 100
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])i?B?\s*", re.IGNORECASE)
_MEGABYTES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}


class Report:
    """Collects problems and gives each its place in the text."""

    def __init__(self, document: Document | None = None, source: str = "<job>") -> None:
        self.problems: list[Problem] = list(document.flaws) if document else []
        self._document = document
        self._source = document.source if document else source

    def add(
        self,
        at: Path,
        message: str,
        keyword: str,
        *,
        value: Any = None,
        suggestion: str | None = None,
        on_key: bool = False,
        params: dict[str, Any] | None = None,
    ) -> None:
        problem = Problem(
            at,
            message,
            keyword=keyword,
            value=MASK if value is not None and _is_secret(at) else value,
            suggestion=suggestion,
            params=params,
            source=self._source,
            position=self._place(at, on_key),
        )
        self.problems.append(problem)

    def expected(
        self, at: Path, what: str, value: Any, *, keyword: str = "type", suggestion: str | None = None
    ) -> None:
        got = MASK if value is not None and _is_secret(at) else shown(value)
        self.add(at, f"expected {what}, got {got}", keyword, value=value, suggestion=suggestion)

    def did_you_mean(self, word: str, known: Iterable[str]) -> str | None:
        """What was probably meant; not looked for any more where hundreds of things are wrong."""
        return did_you_mean(word, known) if len(self.problems) < _MOST_SUGGESTIONS else None

    def _place(self, at: Path, on_key: bool) -> tuple[int, int] | None:
        if self._document is None:
            return None
        find = self._document.key_position if on_key else self._document.position
        while (found := find(at)) is None and at:
            at, find = at[:-1], self._document.key_position
        return found


def _is_secret(at: Path) -> bool:
    return bool(at) and (at[0] == "secrets" or at[-1] == "password")


class Text:
    """A string, perhaps of certain characters and length."""

    def __init__(
        self,
        pattern: str = "",
        words: str = "a text",
        *,
        longest: int = 0,
        repair: Callable[[str], str] | None = None,
        empty: bool = True,
    ) -> None:
        self._pattern = re.compile(pattern)
        self._words, self._longest, self._repair, self._empty = words, longest, repair, empty

    def check(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, str):
            plain = isinstance(value, (bool, int, float))
            report.expected(
                at, "a text", value, suggestion="put it in quotes" if plain and not _is_secret(at) else None
            )
        elif not value and not self._empty:
            report.expected(at, self._words, value, keyword="minLength")
        elif not self._pattern.match(value):
            better = self._repair(value) if self._repair else ""
            suggestion = f"`{better}` would do" if better else None
            report.expected(at, self._words, value, keyword="pattern", suggestion=suggestion)
        elif self._longest and len(value) > self._longest:
            message = f"expected at most {self._longest} characters, got {len(value)}"
            report.add(at, message, "maxLength", value=value, params={"limit": self._longest})


class Whole:
    """An integer; 2.0 is one too, as it is in JavaScript."""

    def __init__(self, at_least: int | None = None, *, or_null: bool = False) -> None:
        self._at_least, self._or_null = at_least, or_null
        self._words = "an integer" + (f" of at least {at_least}" if at_least is not None else "")
        self._words += " or null" if or_null else ""

    def check(self, value: Any, at: Path, report: Report) -> None:
        if value is None and self._or_null:
            return
        if not is_whole(value):
            report.expected(at, self._words, value, suggestion=_as_number(value, at))
        elif self._at_least is not None and value < self._at_least:
            report.expected(at, self._words, value, keyword="minimum")


class Number:
    """A text or any number."""

    def check(self, value: Any, at: Path, report: Report) -> None:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            report.expected(at, "a text or a number", value)


class Choice:
    """One of a few values."""

    def __init__(self, *allowed: Any) -> None:
        self._allowed = allowed

    def check(self, value: Any, at: Path, report: Report) -> None:
        if isinstance(value, bool) or value not in self._allowed:
            words = " or ".join(dict.fromkeys(f"`{item}`" for item in self._allowed))
            names = [item for item in self._allowed if isinstance(item, str)]
            suggestion = (
                report.did_you_mean(value, names) if isinstance(value, str) and len(names) > 1 else None
            )
            report.expected(at, words, value, keyword="enum", suggestion=suggestion)


class ListOf:
    """A list of one shape."""

    def __init__(self, item: Shape, *, at_least: int = 0) -> None:
        self._item, self._at_least = item, at_least

    def check(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, (list, tuple)):
            report.expected(at, "a list", value, suggestion=_listed(value))
            return
        if len(value) < self._at_least:
            report.add(
                at,
                f"expected at least {self._at_least} entry, got none",
                "minItems",
                value=value,
                params={"limit": self._at_least},
            )
        check = self._item.check
        for index, item in enumerate(value):
            check(item, (*at, index), report)


class AnyMapping:
    """A mapping with whatever in it."""

    def check(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, dict):
            masked = value == MASK and at == ("secrets",)
            remedy = "the secrets of a fetched job are masked; write them again" if masked else None
            report.expected(at, "a mapping", value, suggestion=remedy)


class Record:
    """A mapping with known keys; others are refused, allowed, or (lenient) refused if they look misspelt."""

    def __init__(
        self, fields: Mapping[str, Shape], required: tuple[str, ...] = (), *, unknown: str = "refused"
    ) -> None:
        self._fields, self._required, self._unknown = fields, required, unknown

    def check(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.expected(at, "a mapping", value)
            return
        for key in self._required:
            if key not in value:
                message = f"the key `{key}` is missing"
                report.add(at, message, "required", on_key=True, params={"missingProperty": key})
        for key, item in value.items():
            shape = self._fields.get(key)
            if shape is not None:
                shape.check(item, (*at, key), report)
            elif self._unknown != "allowed":
                self._report_unknown(key, item, value, at, report)

    def _report_unknown(self, key: Any, item: Any, value: dict[str, Any], at: Path, report: Report) -> None:
        suggestion = report.did_you_mean(str(key), [known for known in self._fields if known not in value])
        if self._unknown == "lenient" and suggestion is None:
            return
        report.add(
            (*at, key),
            f"the key `{key}` is not known here",
            "additionalProperties",
            value=item,
            suggestion=suggestion,
            on_key=True,
            params={"additionalProperty": key},
        )


class Named:
    """A mapping whose keys are names that people choose, at least one of them."""

    def __init__(self, item: Shape, pattern: str, words: str, repair: Callable[[str], str]) -> None:
        self._item, self._pattern, self._words, self._repair = item, re.compile(pattern), words, repair

    def check(self, value: Any, at: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.expected(at, "a mapping", value)
            return
        if not value:
            report.add(
                at, "expected at least 1 entry, got none", "minProperties", value=value, params={"limit": 1}
            )
        for key, item in value.items():
            if not isinstance(key, str) or not self._pattern.match(key):
                better = self._repair(str(key))
                report.add(
                    (*at, key),
                    f"the name {shown(key)} is not allowed: {self._words}",
                    "additionalProperties",
                    value=key,
                    suggestion=f"`{better}` would do" if better else None,
                    on_key=True,
                    params={"additionalProperty": key},
                )
            self._item.check(item, (*at, key), report)


def is_whole(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, float) and value.is_integer()


def _as_number(value: Any, at: Path) -> str | None:
    if isinstance(value, float) and at[-1] == "gpu":
        return "GPUs cannot be shared by fractions"
    if not isinstance(value, str):
        return None
    if value.strip().lstrip("+-").isdigit():
        return f"write {int(value)} without quotes"
    size = _SIZE.fullmatch(value)
    if size and str(at[-1]).endswith("MB"):
        return f"write {round(float(size[1]) * _MEGABYTES[size[2].upper()])}, the unit is always MB"
    return None


def _listed(value: Any) -> str | None:
    return "begin it with `- `" if isinstance(value, str) else None
