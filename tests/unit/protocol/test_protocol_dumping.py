"""Data to text and back without a change, whatever the strings look like."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openpaisdk.errors import UsageError
from openpaisdk.protocol import dump, load

ODD = [
    "", " ", "\n", "\t", "a\n", "a\n\n", "\na", " a\nb", "a \nb", "a\n b\n", "a\tb\nc", "a\r\nb", "a\x85b",
    "\u2028", "\ufeff", "\x7f", "😀", "😀\n😀", "yes", "No", "on", "null", "~", "true", "12", "1e-4", "0o17",
    "017", "1:30", "2020-01-31", "=", "<<", "- a", "a: b", "a #b", "#a", "@a", "`a", "%a", "*a", "&a",
    "!a", "|", ">", "'", '"', "---", "...", "{a}", "[a]", "?", "? a", "-", ":", "a:", "\\", "\\n",
    "<% $parameters.x %>", "x" * 300, "\x00", "ü\nä\n", "\u3000\u3000\nx", "a\n---\nb\n", "a\n...\n",
    "# c\nb\n", "\x1b[0m", "\ud7ff", "\ue000", "\ufffd",
]  # fmt: skip

texts = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
jobs = st.dictionaries(texts, values, min_size=1, max_size=5)


def same(left: Any, right: Any) -> bool:
    """Equal, of the same types and in the same order."""
    return json.dumps(left) == json.dumps(right)


@pytest.mark.parametrize("format", ["yaml", "json"])
@pytest.mark.parametrize("text", ODD)
def test_odd_texts_survive(format: str, text: str) -> None:
    data = {text: text, "list": [text, [text]], "map": {"k": {text: text}}}
    assert same(load(dump(data, format)).data, data)


@settings(max_examples=150, deadline=None)
@given(jobs)
@example({"a": [[], {}, [{}], [[]]]})
@example({"a": -0.0, "b": 1e300, "c": 1e-7, "d": 1.0})
def test_load_dump_load_in_yaml(data: dict[str, Any]) -> None:
    text = dump(data)
    document = load(text)
    assert same(document.data, data)
    assert document.flaws == []
    assert dump(document.data) == text


@settings(max_examples=150, deadline=None)
@given(jobs)
def test_load_dump_load_in_json(data: dict[str, Any]) -> None:
    text = dump(data, "json")
    assert same(load(text).data, data)
    assert dump(load(text).data, "json") == text


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(texts, texts, min_size=1, max_size=5))
def test_other_yaml_readers_see_the_same_texts(data: dict[str, str]) -> None:
    assert yaml.safe_load(dump(data)) == data


def test_key_order_and_block_scalars() -> None:
    data = {"z": 1, "a": {"w": [], "b": {}}, "commands": ["cd /code\npython train.py\n", "ls\npwd", "one"]}
    assert dump(data) == (
        "z: 1\na:\n  w: []\n  b: {}\ncommands:\n"
        "- |\n  cd /code\n  python train.py\n- |-\n  ls\n  pwd\n- one\n"
    )


def test_long_lines_are_not_folded() -> None:
    line = "python train.py " + "--option value " * 40 + "end"
    assert dump({"c": line}) == f"c: {line}\n"


def test_shared_parts_are_written_out() -> None:
    shared = {"cpu": 1}
    assert dump({"a": shared, "b": shared}) == "a:\n  cpu: 1\nb:\n  cpu: 1\n"
    assert dump({"a": (1, 2)}) == "a:\n- 1\n- 2\n"


def test_what_json_does_not_know_becomes_null() -> None:
    assert json.loads(dump({"a": [float("inf"), float("nan"), 1.5]}, "json")) == {"a": [None, None, 1.5]}


def test_what_cannot_be_written_is_named() -> None:
    for format in ("yaml", "json"):
        with pytest.raises(UsageError, match="cannot be written"):
            dump({"a": object()}, format)
    with pytest.raises(UsageError, match=r"U\+D800"):
        dump({"a": "\ud800"})
    assert load(dump({"a": "\ud800"}, "json")).data == {"a": "\ud800"}
    with pytest.raises(UsageError, match="toml"):
        dump({}, "toml")
