"""The path tree against a plain reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openpaisdk.server.routing import Tree, split_path


def tree(*paths: str) -> Tree[str]:
    made: Tree[str] = Tree()
    for path in paths:
        made.add("GET", path, path)
    return made


def test_fixed_segments_come_before_parameters_and_searching_goes_back() -> None:
    made = tree("/users/{name}", "/users/me", "/users/{name}/group", "/users/me/only", "/x/{rest:path}")
    assert made.find("GET", ["users", "me"]) == ("/users/me", {})
    assert made.find("GET", ["Users", "Me"]) == ("/users/me", {})
    assert made.find("GET", ["users", "Bob"]) == ("/users/{name}", {"name": "Bob"})
    assert made.find("GET", ["users", "me", "group"]) == ("/users/{name}/group", {"name": "me"})
    assert made.find("GET", ["x", "a", "b"]) == ("/x/{rest:path}", {"rest": "a/b"})
    assert made.find("GET", ["x"]) is None
    assert made.find("POST", ["users", "me"]) is None
    assert made.find("HEAD", ["users", "me"]) == ("/users/me", {})


def test_the_same_path_twice_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="twice"):
        tree("/a/{x}", "/a/{y}")


segments = st.sampled_from(["a", "b", "{x}", "{y}"])


@given(
    st.lists(st.lists(segments, min_size=1, max_size=4), max_size=8),
    st.lists(st.sampled_from("abc"), max_size=4),
)
def test_a_path_is_found_exactly_when_one_matches(shapes: list[list[str]], wanted: list[str]) -> None:
    made: Tree[list[str]] = Tree()
    added: list[list[str]] = []
    for shape in shapes:
        try:
            made.add("GET", "/" + "/".join(shape), shape)
        except ValueError:
            continue
        added.append(shape)

    def matches(shape: list[str]) -> bool:
        return len(shape) == len(wanted) and all(s.startswith("{") or s == w for s, w in zip(shape, wanted))

    found = made.find("GET", wanted)
    assert (found is not None) == any(matches(shape) for shape in added)
    assert found is None or matches(found[0])


@given(st.text(max_size=30))
def test_splitting_never_fails(raw: str) -> None:
    assert all(split_path("/" + raw))


def test_splitting_decodes_each_segment_alone() -> None:
    assert split_path("/a%2Fb//c%7Ed/%ff/") == ["a/b", "c~d", "\ufffd"]
