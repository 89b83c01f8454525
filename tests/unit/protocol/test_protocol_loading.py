"""Reading YAML and JSON: values as OpenPAI's server reads them, positions, and texts that cannot be read."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openpaisdk.errors import InvalidJobError, NotFoundError, UsageError
from openpaisdk.protocol import Problem, load, load_file


def value(text: str) -> Any:
    return load(f"a: {text}\n").data["a"]


def refused(text: str) -> Problem:
    with pytest.raises(InvalidJobError) as caught:
        load(text, "job.yaml")
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    return problem


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "Yes", "NO", "y", "n", "tRue", "nULL"])
def test_words_that_only_old_yaml_takes_for_booleans_are_texts(word: str) -> None:
    assert value(word) == word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True), ("False", False), ("TRUE", True), ("", None), ("~", None), ("null", None),
        ("NULL", None),
        ("0", 0), ("-1", -1), ("+12", 12), ("1_000", 1000), ("0x1F", 31), ("-0x1F", -31), ("0b101", 5),
        ("017", 15),
        ("1:30", 90), ("-1:30", -90), ("190:20:30", 685230), ("1e3", 1000.0), ("1e-4", 0.0001), ("1.", 1.0),
        (".5", 0.5), ("-1.5e3", -1500.0), ("1:30.5", 90.5), (".inf", math.inf), ("-.INF", -math.inf),
        ("0o17", "0o17"), ("09", "09"), ("1_", "1_"), ("8080:80", "8080:80"), ("2020-01-31", "2020-01-31"),
        ("2020-01-31 10:00:00", "2020-01-31 10:00:00"), ("1.2.3", "1.2.3"), ("-.5", "-.5"), ("'1'", "1"),
        ('"true"', "true"), ("!!str 12", "12"), ("!!int '12'", 12), ("!!float 3", 3.0),
    ],
)  # fmt: skip
def test_scalars(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_a_number_with_too_many_digits_does_no_harm() -> None:
    assert value("9" * 5000) == math.inf
    assert value("-" + "9" * 5000 + ":30") == -math.inf
    assert "too many digits" in refused('{"a": ' + "9" * 5000 + "}").message


def test_keys_are_texts_as_in_javascript() -> None:
    assert load("1: a\ntrue: b\n~: c\n1.0: d\n0x10: e\n'01': f\n").data == {
        "1": "d", "true": "b", "null": "c", "16": "e", "01": "f",
    }  # fmt: skip


def test_positions_in_yaml() -> None:
    document = load("a: 1\nb:\n  - x: yes\n    y: |\n      text\n  - [p,  q]\n")
    assert document.position(("a",)) == (1, 4)
    assert document.position(("b",)) == (3, 3)
    assert document.key_position(("b",)) == (2, 1)
    assert document.position(("b", 0, "y")) == (4, 8)
    assert document.position(("b", 1, 1)) == (6, 10)
    assert document.position(()) == (1, 1)
    for nowhere in (("c",), ("b", 7), ("a", "b"), ("b", "x"), ("b", 0, 0)):
        assert document.position(nowhere) is None


def test_positions_in_json() -> None:
    text = '{\n\t"a": 1,\n\t"b": [{"x": "y\\"}", "z": [ ]}, [1,\n 2], {}],\n "c": {"d": null}\n}'
    document = load(text)
    assert document.data == {"a": 1, "b": [{"x": 'y"}', "z": []}, [1, 2], {}], "c": {"d": None}}
    assert document.position(("a",)) == (2, 7)
    assert document.key_position(("a",)) == (2, 2)
    assert document.position(("b", 0, "z")) == (3, 27)
    assert document.position(("b", 1, 1)) == (4, 2)
    assert document.position(("b", 2)) == (4, 6)
    assert document.position(("c", "d")) == (5, 13)
    assert document.position(("c", "e")) is None


def test_a_key_twice_is_a_flaw_not_a_failure() -> None:
    for text, line in (("a:\n  b: 1\n  b: 2\n", 3), ('{"a": {"b": 1,\n\n\n"b": 2}}', 4)):
        document = load(text)
        (flaw,) = document.flaws
        assert (flaw.path, flaw.line, flaw.keyword) == ("a.b", line, "duplicate")
        assert document.data == {"a": {"b": 2}}


def test_anchors_and_merges() -> None:
    document = load("base: &b {cpu: 1, gpu: 2}\na:\n  gpu: 0\n  <<: *b\nc:\n  <<: [{x: 1}, *b]\n  d: *b\n")
    assert document.flaws == []
    assert document.data["a"] == {"gpu": 0, "cpu": 1}
    assert document.data["c"] == {"d": {"cpu": 1, "gpu": 2}, "x": 1, "cpu": 1, "gpu": 2}
    assert document.position(("a", "cpu")) == (1, 16)
    assert load("<<: 3\n").flaws[0].message == "`<<` needs a mapping to merge"
    assert load("'<<': 3\n").data == {"<<": 3}


def test_flaws_of_values() -> None:
    document = load("a: !!binary aGk=\nb: !mine 3\nc: !!int x\nd: &d [*d]\n? [x]\n: 1\n")
    assert [(flaw.path, flaw.line) for flaw in document.flaws] == [
        ("a", 1), ("b", 2), ("c", 3), ("d.0", 4), ("", 5),
    ]  # fmt: skip


def test_aliases_that_would_fill_the_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi")]
    (flaw,) = load("\n".join(lines)).flaws
    assert flaw.keyword == "size"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 50_000,
        "{a: " * 30_000,
        '{"a":' * 500 + "1" + "}" * 500,
        "a: " + "[" * 100 + "]" * 100,
    ],
    ids=["brackets", "dashes", "braces", "json", "just too deep"],
)
def test_deep_nesting_is_refused_not_fatal(text: str) -> None:
    assert "nested more than 100 levels" in refused(text).message


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a: 1\nb: c: d\n", 2, 5, "mapping values are not allowed"),
        ("a:\n\t- x\n", 2, 1, "indent with spaces, not tabs"),
        ("a: @x\n", 1, 4, "quote a text that begins with @"),
        ("a: [1, 2\nb: 3\n", 2, 2, "did not find expected ',' or ']'"),
        ("a: *nothing\n", 1, 4, "undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, 1, "a file of its own"),
        ("a: 'x\n", 2, 1, "found unexpected end of stream"),
        ("ab\x01c: 1\n", 1, 3, "U+0001 is not allowed"),
        ('{"a": 1,\n "b": }', 2, 7, "this is not valid JSON: expecting value"),
        ('{"a": 1,}', 1, 9, "this is not valid JSON"),
        ("{a: 1,\n b: ]}", 2, 5, "this is not valid YAML"),
    ],
)
def test_broken_texts_name_the_place(text: str, line: int, column: int, words: str) -> None:
    problem = refused(text)
    assert words in str(problem)
    assert (problem.line, problem.column) in {(line, column), (line, column - 1), (line, column + 1)}
    assert str(problem).startswith(f"job.yaml:{problem.line}:")


def test_json_in_flow_style_and_with_a_mark_in_front() -> None:
    assert load("{a: 1, b: [x]}").data == {"a": 1, "b": ["x"]}
    assert load("\ufeffa: 1").data == {"a": 1}
    assert load('\ufeff{"a": 1}').data == {"a": 1}


def test_a_text_of_megabytes_is_refused_before_it_is_parsed() -> None:
    assert refused("a" * 8_000_001).keyword == "size"


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes("\ufeffa: ü\r\nb: 2\r\n".encode())
    assert load_file(str(file)).data == {"a": "ü", "b": 2}
    assert load_file(str(file)).source == str(file)
    with pytest.raises(NotFoundError, match="nowhere"):
        load_file(str(tmp_path / "nowhere.yaml"))
    with pytest.raises(UsageError, match="cannot be read"):
        load_file(str(tmp_path))
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(InvalidJobError) as caught:
        load_file(str(file))
    assert (caught.value.problems[0].line, caught.value.problems[0].column) == (2, 4)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 5\n")))
    assert load_file("-").data == {"a": 5}


def test_a_yaml_library_without_its_c_part_gives_the_same() -> None:
    program = (
        "import sys; sys.modules['yaml._yaml'] = None\n"
        "from openpaisdk.protocol import check, dump, load\n"
        "doc = load('a: yes\\nb: [1e-4, {c: 017}]\\n')\n"
        "print(doc.data, doc.position(('b', 1, 'c')), len(check(doc)), load(dump(doc.data)).data)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (
        found.stdout
        == "{'a': 'yes', 'b': [0.0001, {'c': 15}]} (2, 15) 6 {'a': 'yes', 'b': [0.0001, {'c': 15}]}\n"
    )
