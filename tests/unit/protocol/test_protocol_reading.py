"""What is read off a spec: totals, completion, masks."""

from __future__ import annotations

from typing import Any

import pytest

from openpaisdk.protocol import effective_completion, mask_secrets, priority_class, totals, virtual_cluster


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ({"instances": 3}, (1, 3)),
        ({}, (1, 1)),
        ({"instances": 3, "completion": None}, (1, 3)),
        ({"instances": 3, "completion": {"minFailedInstances": None, "minSucceededInstances": None}}, (1, 3)),
        ({"instances": 3, "completion": {"minFailedInstances": 0, "minSucceededInstances": 0}}, (1, 3)),
        ({"instances": 3, "completion": {"minFailedInstances": -1, "minSucceededInstances": -1}}, (-1, -1)),
        ({"instances": 3, "completion": {"minFailedInstances": 2, "minSucceededInstances": 1}}, (2, 1)),
    ],
)
def test_effective_completion(role: dict[str, Any], expected: tuple[int, int]) -> None:
    assert effective_completion(role) == expected


def test_totals() -> None:
    roles = {
        "a": {"instances": 3, "resourcePerInstance": {"gpu": 2}},
        "b": {"resourcePerInstance": {"gpu": 1}},
        "c": {"instances": 4, "resourcePerInstance": {"gpu": 0}},
    }
    assert totals({"taskRoles": roles}) == (7, 8, 3)


def test_defaults_of_the_job() -> None:
    assert virtual_cluster({}) == "default"
    assert virtual_cluster({"defaults": {"virtualCluster": "gpu"}}) == "gpu"
    assert priority_class({}) is None
    assert priority_class({"extras": {"hivedScheduler": {"jobPriorityClass": "prod"}}}) == "prod"
    assert priority_class({"extras": {"hivedScheduler": "odd"}}) is None


def test_masking_leaves_the_original_alone() -> None:
    spec = {
        "secrets": {"a": "hunter2"},
        "prerequisites": [
            {"type": "dockerimage", "auth": {"username": "me", "password": "hunter2"}},
            {"type": "dockerimage", "auth": {"username": "me", "password": "<% $secrets.a %>"}},
            {"type": "dockerimage", "auth": {"password": "x<% $secrets.a %>"}},
            {"type": "data"},
        ],
        "name": "j",
    }
    masked = mask_secrets(spec)
    assert masked["secrets"] == "******"
    assert [item.get("auth", {}).get("password") for item in masked["prerequisites"]] == [
        "******", "<% $secrets.a %>", "******", None,
    ]  # fmt: skip
    assert "hunter2" not in str(masked)
    assert str(spec).count("hunter2") == 2
    assert mask_secrets({"name": "j"}) == {"name": "j"}
    assert mask_secrets(["no mapping"]) == ["no mapping"]
