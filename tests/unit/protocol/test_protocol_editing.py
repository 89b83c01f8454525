"""`--set path=value`."""

from __future__ import annotations

from typing import Any

import pytest

from openpaisdk.errors import UsageError
from openpaisdk.protocol import set_value


def job() -> dict[str, Any]:
    return {"taskRoles": {"worker": {"instances": 1, "commands": ["a", "b"]}}, "list": [{"x": 1}, {"x": 2}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4", 4), ("4.5", 4.5), ("1e-4", 0.0001), ("true", True), ("null", None), ("yes", "yes"), ("", ""),
        ("a=b=c", "a=b=c"), ("'4'", "4"), ('"x y"', "x y"), ("[1, b]", [1, "b"]), ('{"a": 1}', {"a": 1}),
        ("{a: 1}", {"a": 1}), ("some words: here", "some words: here"), ("-1", -1), ("- x", "- x"),
    ],
)  # fmt: skip
def test_values_are_typed(text: str, expected: object) -> None:
    data = job()
    set_value(data, f"taskRoles.worker.instances={text}")
    assert data["taskRoles"]["worker"]["instances"] == expected
    assert type(data["taskRoles"]["worker"]["instances"]) is type(expected)


def test_paths() -> None:
    data = job()
    set_value(data, "list.0.x=5")
    set_value(data, "list[1].x=6")
    set_value(data, "list[2].x=7")
    set_value(data, "taskRoles.worker.commands[2]=c")
    set_value(data, "defaults.virtualCluster=gpu")
    set_value(data, r"extras.com\.microsoft\.pai.x=1")
    set_value(data, "extras.storages[0].name=nfs")
    set_value(data, "parameters.0=zero")
    set_value(data, "taskRoles.ps.instances=1")
    set_value(data, "taskRoles.worker2={instances: 3}")
    assert data["list"] == [{"x": 5}, {"x": 6}, {"x": 7}]
    assert data["taskRoles"]["worker"]["commands"] == ["a", "b", "c"]
    assert data["defaults"] == {"virtualCluster": "gpu"}
    assert data["extras"] == {"com.microsoft.pai": {"x": 1}, "storages": [{"name": "nfs"}]}
    assert data["parameters"] == {"0": "zero"}
    assert data["taskRoles"]["ps"] == {"instances": 1}
    assert data["taskRoles"]["worker2"] == {"instances": 3}


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("nothing", "'nothing' is not an assignment"),
        ("=3", "'=3' is not an assignment"),
        ("a..b=3", "not understood at '.b'"),
        ("a[x]=3", "not understood at '[x]'"),
        ("list.first.x=3", "list is a list, 'first' is not an index"),
        ("list.7.x=3", "list has 2 entries, there is no entry 7"),
        ("taskRoles.worker.instances.x=3", "taskRoles.worker.instances is 1, there is nothing named 'x'"),
        ("taskRoles.worker.instances=[1", "cannot be read"),
        ("taskRoles.wroker.instances=4", "no task role `wroker`; did you mean `worker`?"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(assignment: str, words: str) -> None:
    data = job()
    with pytest.raises(UsageError) as caught:
        set_value(data, assignment)
    assert words in caught.value.message
    assert data == job()
