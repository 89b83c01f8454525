"""Groups and the rights that come with them."""

from __future__ import annotations

from typing import Any

import pytest

EMPTY = {"admin": False, "virtualClusters": []}


def create(admin: Any, **more: Any) -> Any:
    return admin.post("/api/v2/groups", {"groupname": "lab", **more})


def lab(client: Any) -> Any:
    return client.get("/api/v2/groups/lab").json()


def test_a_group_is_created_with_its_name_alone(admin: Any, alice: Any) -> None:
    assert create(admin).status == 201
    expected = {"groupname": "lab", "description": "", "externalName": "", "extension": {"acls": EMPTY}}
    assert lab(alice) == alice.get("/api/v2/group/lab/").json() == expected
    assert expected in alice.get("/api/v2/groups").json()
    assert create(admin).status == 409


def test_groups_that_are_always_there(alice: Any) -> None:
    names = [group["groupname"] for group in alice.get("/api/v2/groups").json()]
    assert names == ["admingroup", "default", "vision"]


def test_an_unknown_group_is_400_when_read_or_updated(admin: Any) -> None:
    for reply in (
        admin.get("/api/v2/groups/lab"),
        admin.put("/api/v2/groups", {"data": {"groupname": "lab"}}),
    ):
        assert (reply.status, reply.code) == (400, "NoGroupError")
    assert (admin.delete("/api/v2/groups/lab").status, admin.delete("/api/v2/groups/lab").code) == (
        404,
        "NoGroupError",
    )


@pytest.mark.parametrize("name", ["a-b", "", "a b", "lab\n", "é"])
def test_names_that_no_group_can_have(admin: Any, name: str) -> None:
    assert create(admin, groupname=name).code == "InvalidParametersError"


@pytest.mark.parametrize(
    "acls", [{"admin": "maybe"}, {"virtualClusters": "default"}, [], 1, {"storageConfigs": [1]}]
)
def test_rights_have_to_make_sense(admin: Any, acls: Any) -> None:
    assert create(admin, extension={"acls": acls}).code == "InvalidParametersError"
    create(admin)
    assert admin.put("/api/v2/groups/lab/extension/acls", {"data": acls}).code == "InvalidParametersError"
    assert lab(admin)["extension"]["acls"] == EMPTY


def test_updating_in_part_and_as_a_whole(admin: Any) -> None:
    create(admin, description="old", externalName="there", extension={"a": 1})
    change = {"groupname": "lab", "description": "new", "extension": {"b": 2}}
    assert admin.put("/api/v2/groups", {"data": change, "patch": True}).status == 201
    assert lab(admin) == {
        "groupname": "lab",
        "description": "new",
        "externalName": "there",
        "extension": {"a": 1, "b": 2, "acls": EMPTY},
    }
    assert admin.put("/api/v2/groups", {"data": change, "patch": False}).status == 201
    assert lab(admin)["externalName"] == "" and lab(admin)["extension"] == {"b": 2, "acls": EMPTY}


def test_the_older_ways_to_change_a_group(admin: Any) -> None:
    create(admin)
    assert admin.put("/api/v2/groups/lab/description", {"description": "d"}).status == 201
    assert admin.put("/api/v2/groups/lab/externalname", {"externalName": "e"}).status == 201
    assert admin.put("/api/v2/groups/lab/extension", {"extension": {"x": 1}}).status == 201
    assert admin.put("/api/v2/groups/lab/extension/deep/er", {"data": [1]}).status == 201
    assert lab(admin) == {
        "groupname": "lab",
        "description": "d",
        "externalName": "e",
        "extension": {"acls": EMPTY, "x": 1, "deep": {"er": [1]}},
    }
    assert admin.put("/api/v2/groups/lab/extension/x/y", {"data": 1}).code == "InvalidParametersError"
    assert admin.put("/api/v2/groups/lab/extension/" + "a/" * 500, {"data": 1}).status == 400
    assert admin.put("/api/v2/groups/nowhere/description", {"description": "d"}).status == 404


def test_rights_are_the_union_over_groups(admin: Any, alice: Any) -> None:
    acls = {"admin": False, "virtualClusters": ["vision"], "storageConfigs": ["nfs", "blob"]}
    create(admin, extension={"acls": acls})
    admin.put("/api/v2/users/alice/group", {"groupname": "lab"})
    found = alice.get("/api/v2/users/alice").json()
    assert found["virtualCluster"] == ["default", "vision"] and found["storageConfig"] == ["nfs", "blob"]
    admin.put("/api/v2/groups/lab/extension/acls/admin", {"data": True})
    assert alice.get("/api/v2/users/alice").json()["admin"] is True
    assert alice.get("/api/v2/groups/lab/userlist").json() == [{"username": "alice", "clusterAdmin": True}]


def test_removing_a_group_takes_its_rights_away(admin: Any, alice: Any, db: Any) -> None:
    create(admin, extension={"acls": {"admin": True}})
    admin.put("/api/v2/users/alice/group", {"groupname": "lab"})
    assert admin.delete("/api/v2/groups/lab").status == 200
    found = alice.get("/api/v2/users/alice").json()
    assert found["grouplist"] == ["default"] and found["admin"] is False
    assert db.read.execute("SELECT groups FROM users WHERE name = 'alice'").fetchone() == ('["default"]',)


@pytest.mark.parametrize("name", ["default", "admingroup"])
def test_the_groups_that_everything_rests_on_stay(admin: Any, name: str) -> None:
    assert admin.delete(f"/api/v2/groups/{name}").status == 403


def test_members(admin: Any, alice: Any) -> None:
    assert admin.get("/api/v2/groups/admingroup/userlist").json() == [
        {"username": "admin", "clusterAdmin": True}
    ]
    assert admin.get("/api/v2/groups/undefined/userlist").json() == []
    assert alice.get("/api/v2/groups/default/userlist").status == 403
