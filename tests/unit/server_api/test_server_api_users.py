"""Accounts over HTTP: who may change what, and the answers clients rely on."""

from __future__ import annotations

from typing import Any

import pytest

from openpaisdk.server.accounts import Accounts

LOGIN = "/api/v2/authn/basic/login"


def password_works(client: Any, name: str, password: str) -> bool:
    return client.post(LOGIN, {"username": name, "password": password}).status == 200


def create(admin: Any, name: str = "carol", /, **more: Any) -> Any:
    return admin.post("/api/v2/users", {"username": name, "password": "carol-secret", **more})


def test_a_user_object_has_what_clients_read(alice: Any) -> None:
    expected = {
        "username": "alice",
        "grouplist": ["default"],
        "email": "",
        "extension": {},
        "admin": False,
        "virtualCluster": ["default"],
        "storageConfig": [],
    }
    for path in (
        "/api/v2/users/alice",
        "/api/v2/user/alice/",
        "/api/v1/user/alice",
        "/rest-server/api/v2/users/alice",
    ):
        assert alice.get(path).json() == expected


def test_admins_may_use_every_virtual_cluster(alice: Any) -> None:
    found = alice.get("/api/v2/users/admin").json()
    assert found["admin"] is True and found["virtualCluster"] == ["default", "vision"]


def test_an_unknown_user_is_400_when_read_and_404_when_changed(admin: Any) -> None:
    assert (admin.get("/api/v2/users/nobody").status, admin.get("/api/v2/users/nobody").code) == (
        400,
        "NoUserError",
    )
    for reply in (
        admin.delete("/api/v2/users/nobody"),
        admin.put("/api/v2/users", {"patch": True, "data": {"username": "nobody", "email": "a@b.c"}}),
        admin.put("/api/v2/users/nobody/grouplist", {"grouplist": ["default"]}),
        admin.put("/api/v2/users/nobody/group", {"groupname": "default"}),
        admin.delete("/api/v2/users/nobody/group", {"groupname": "default"}),
        admin.put("/api/v2/users/nobody/extension", {"extension": {}}),
        admin.put("/api/v2/users/nobody/virtualcluster", {"virtualCluster": []}),
        admin.put("/api/v2/users/nobody/password", {"newPassword": "longer-secret"}),
        admin.put("/api/v2/users/nobody/email", {"email": ""}),
        admin.put("/api/v2/users/nobody/admin", {"admin": False}),
    ):
        assert (reply.status, reply.code) == (404, "NoUserError")


def test_everybody_may_list_users(alice: Any) -> None:
    assert [user["username"] for user in alice.get("/api/v2/users").json()] == ["admin", "alice", "bob"]


def test_creating_a_user(admin: Any) -> None:
    reply = create(admin, email="c@example.org", virtualCluster=["vision"], admin=False, extension={"a": 1})
    assert reply.status == 201 and reply.json()["message"]
    found = admin.get("/api/v2/users/carol").json()
    assert found["grouplist"] == ["default", "vision"] and found["virtualCluster"] == ["default", "vision"]
    assert found["email"] == "c@example.org" and found["extension"] == {"a": 1}
    assert password_works(admin, "carol", "carol-secret")
    assert (create(admin).status, create(admin).code) == (409, "ConflictUserError")


def test_the_portal_creates_users_with_plain_text_json(admin: Any) -> None:
    body = b'{"username":"carol","password":"carol-secret","admin":true}'
    assert (
        admin.post("/api/v2/user/", body=body, headers={"content-type": "text/plain;charset=UTF-8"}).status
        == 201
    )
    assert admin.get("/api/v2/users/carol").json()["admin"] is True


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"virtualCluster": ["nowhere"]}, 404, "NoGroupError"),
        ({"virtualCluster": ["admingroup"]}, 400, "NoVirtualClusterError"),
        ({"email": "not an address"}, 400, "InvalidParametersError"),
        ({"unknown": 1}, 400, "InvalidParametersError"),
        ({"username": ".."}, 400, "InvalidParametersError"),
        ({"username": "."}, 400, "InvalidParametersError"),
        ({"username": "a/b"}, 400, "InvalidParametersError"),
        ({"username": "carol\n"}, 400, "InvalidParametersError"),
        ({"username": "Ålice"}, 400, "InvalidParametersError"),
        ({"password": "short"}, 400, "InvalidParametersError"),
        ({"extension": []}, 400, "InvalidParametersError"),
    ],
)
def test_users_that_cannot_be_created(admin: Any, more: Any, status: int, code: str) -> None:
    reply = create(admin, **more)
    assert (reply.status, reply.code) == (status, code)
    assert len(admin.get("/api/v2/users").json()) == 3


def test_changing_a_user_in_part(admin: Any, alice: Any) -> None:
    admin.put("/api/v2/users/alice/extension", {"extension": {"a": 1, "b": 2}})
    reply = admin.put("/api/v2/users", {"patch": True, "data": {"username": "alice", "extension": {"b": 3}}})
    assert reply.status == 201
    assert admin.get("/api/v2/users/alice").json()["extension"] == {"a": 1, "b": 3}
    assert alice.get("/api/v2/users").status == 200


def test_changing_a_user_as_a_whole_needs_everything(admin: Any) -> None:
    data = {
        "username": "alice",
        "email": "a@example.org",
        "virtualCluster": ["vision"],
        "admin": False,
        "extension": {},
    }
    assert admin.put("/api/v2/users", {"data": data}).code == "InvalidParametersError"
    assert admin.put("/api/v2/users", {"data": {**data, "password": "other-secret"}}).status == 201
    found = admin.get("/api/v2/users/alice").json()
    assert found["email"] == "a@example.org" and found["virtualCluster"] == ["default", "vision"]
    assert password_works(admin, "alice", "other-secret")
    bad = {**data, "password": "other-secret", "virtualCluster": ["nowhere"]}
    assert (
        admin.put("/api/v2/users", {"data": bad}).status,
        admin.put("/api/v2/users", {"data": bad}).code,
    ) == (
        400,
        "NoVirtualClusterError",
    )


def test_a_new_password_ends_sessions_but_not_application_tokens(admin: Any, alice: Any) -> None:
    program = alice.acting_as(alice.post("/api/v2/tokens/application", {}).json()["token"])
    assert admin.put("/api/v2/users/alice/password", {"newPassword": "other-secret"}).status == 201
    assert alice.get("/api/v2/users").status == 401
    assert program.get("/api/v2/users").status == 200
    assert not password_works(admin, "alice", "alice-secret")


def test_the_token_of_the_local_user_survives_a_new_password(anonymous: Any, accounts: Accounts) -> None:
    me = anonymous.acting_as(accounts.ensure_local_user("me"))
    assert me.put("/api/v2/users/me/password", {"newPassword": "other-secret"}).status == 201
    assert me.get("/api/v2/users").status == 200
    assert password_works(me, "me", "other-secret")


def test_changing_ones_own_password_needs_the_old_one(alice: Any, bob: Any) -> None:
    path = "/api/v2/users/alice/password"
    for sent in ({"newPassword": "other-secret"}, {"newPassword": "other-secret", "oldPassword": "wrong"}):
        assert (alice.put(path, sent).status, alice.put(path, sent).code) == (403, "ForbiddenUserError")
    right = {"newPassword": "other-secret", "oldPassword": "alice-secret"}
    assert bob.put(path, right).status == 403
    assert alice.put(path, right).status == 201
    assert password_works(bob, "alice", "other-secret")


def test_updating_oneself_really_changes_the_password(alice: Any) -> None:
    data = {
        "username": "alice",
        "email": "a@example.org",
        "oldPassword": "alice-secret",
        "newPassword": "other-secret",
    }
    assert alice.put("/api/v2/users/me", {"data": data}).status == 201
    assert password_works(alice, "alice", "other-secret")
    assert alice.get("/api/v2/users").status == 401


def test_updating_oneself_with_the_same_password_keeps_the_session(alice: Any) -> None:
    data = {
        "username": "alice",
        "email": "a@example.org",
        "oldPassword": "alice-secret",
        "newPassword": "alice-secret",
    }
    assert alice.put("/api/v2/users/me", {"data": data, "patch": False}).status == 201
    assert alice.get("/api/v2/users/alice").json()["email"] == "a@example.org"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"patch": True, "data": {"username": "alice", "email": "new@example.org"}}, 201),
        ({"patch": True, "data": {"username": "alice", "extension": {"sshKeys": []}}}, 201),
        ({"patch": True, "data": {"username": "bob", "email": "new@example.org"}}, 403),
        ({"data": {"username": "alice", "email": "new@example.org"}}, 400),
        ({"patch": True, "data": {"username": "alice", "newPassword": "other-secret"}}, 400),
        (
            {"patch": True, "data": {"username": "alice", "newPassword": "other-secret", "oldPassword": "x"}},
            403,
        ),
        ({"patch": True, "data": {"username": "alice", "admin": True}}, 400),
    ],
)
def test_updating_oneself(alice: Any, sent: Any, status: int) -> None:
    assert alice.put("/api/v2/users/me", sent).status == status
    assert alice.get("/api/v2/users/alice").json()["admin"] is False


def test_removing_a_user_ends_all_its_tokens(admin: Any, alice: Any) -> None:
    program = alice.acting_as(alice.post("/api/v2/tokens/application", {}).json()["token"])
    assert admin.delete("/api/v2/users/alice").status == 200
    assert program.get("/api/v2/users").status == alice.get("/api/v2/users").status == 401
    create(admin, "alice")
    assert program.get("/api/v2/users").status == alice.get("/api/v2/users").status == 401
    assert (admin.delete("/api/v2/users/admin").status, admin.delete("/api/v2/users/admin").code) == (
        403,
        "RemoveAdminError",
    )


def test_groups_of_a_user(admin: Any) -> None:
    assert admin.put("/api/v2/users/alice/group", {"groupname": "vision"}).status == 201
    assert admin.put("/api/v2/users/alice/group", {"groupname": "vision"}).status == 201
    assert admin.get("/api/v2/users/alice").json()["grouplist"] == ["default", "vision"]
    assert admin.delete("/api/v2/users/alice/group/", {"groupname": "vision"}).status == 201
    assert admin.get("/api/v2/users/alice").json()["grouplist"] == ["default"]
    assert admin.put("/api/v2/users/alice/grouplist", {"grouplist": ["vision"]}).status == 201
    assert admin.get("/api/v2/users/alice").json()["virtualCluster"] == ["vision"]
    for reply in (
        admin.put("/api/v2/users/alice/group", {"groupname": "nowhere"}),
        admin.put("/api/v2/users/alice/grouplist", {"grouplist": ["nowhere"]}),
    ):
        assert (reply.status, reply.code) == (404, "NoGroupError")


def test_virtual_clusters_of_a_user(admin: Any) -> None:
    path = "/api/v2/users/alice/virtualcluster"
    assert admin.put(path, {"virtualCluster": ["vision"]}).status == 201
    assert admin.get("/api/v2/users/alice").json()["virtualCluster"] == ["default", "vision"]
    assert admin.put(path, {"virtualCluster": []}).status == 201
    assert admin.get("/api/v2/users/alice").json()["virtualCluster"] == ["default"]
    assert admin.put(path, {"virtualCluster": ["nowhere"]}).code == "NoVirtualClusterError"
    assert admin.put("/api/v2/users/admin/virtualcluster", {"virtualCluster": []}).status == 403


def test_admins_come_and_go(admin: Any, alice: Any) -> None:
    assert admin.put("/api/v2/users/alice/admin", {"admin": True}).status == 201
    assert alice.get("/api/v2/kubernetes/nodes").status == 200
    assert admin.put("/api/v2/users/alice/admin", {"admin": False}).status == 201
    assert alice.get("/api/v2/kubernetes/nodes").status == 403


def test_only_oneself_or_an_admin_changes_email_and_extension(admin: Any, alice: Any, bob: Any) -> None:
    for path, sent in (("email", {"email": "a@b.c"}), ("extension", {"extension": {"x": 1}})):
        assert bob.put(f"/api/v2/users/alice/{path}", sent).status == 403
        assert alice.put(f"/api/v2/users/alice/{path}", sent).status == 201
        assert admin.put(f"/api/v2/users/alice/{path}", sent).status == 201


def test_secrets_in_an_extension_stay_with_their_owner(alice: Any, bob: Any) -> None:
    extension = {
        "jobSSH": {"key": "PRIVATE", "pubKey": "public"},
        "githubPAT": "PAT",
        "boundedClusters": {"other": {"token": "TOKEN"}},
        "sshKeys": [{"title": "t", "value": "v", "time": "n"}],
    }
    alice.put("/api/v2/users/alice/extension", {"extension": extension})
    mine, others = alice.get("/api/v2/users/alice"), bob.get("/api/v2/users/alice")
    assert mine.json()["extension"]["githubPAT"] == "PAT" and mine.json()["extension"]["boundedClusters"]
    assert "PRIVATE" not in mine.text and mine.json()["extension"]["jobSSH"] == {"pubKey": "public"}
    assert set(others.json()["extension"]) == {"jobSSH", "sshKeys"}
    listed = bob.get("/api/v2/users").text
    assert "PRIVATE" not in listed and "PAT" not in listed and "TOKEN" not in listed
    assert bob.post(LOGIN, {"username": "alice", "password": "alice-secret"}).json()["hasGitHubPAT"] == "PAT"


def test_the_last_admin_stays(admin: Any, alice: Any) -> None:
    for path, sent in (
        ("users/admin/admin", {"admin": False}),
        ("users/admin/grouplist", {"grouplist": ["default"]}),
        ("users", {"patch": True, "data": {"username": "admin", "admin": False}}),
        ("groups/admingroup/extension/acls/admin", {"data": False}),
    ):
        reply = admin.put("/api/v2/" + path, sent)
        assert (reply.status, reply.code) == (403, "RemoveAdminError")
    admin.put("/api/v2/users/alice/admin", {"admin": True})
    assert admin.put("/api/v2/users/admin/admin", {"admin": False}).status == 201
    assert alice.get("/api/v2/tokens/check").json()["admin"] is True
