"""Virtual clusters, storages and the empty answers the portal needs."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_virtual_clusters(alice: Any) -> None:
    found = alice.get("/api/v2/virtual-clusters").json()
    assert list(found) == ["default", "vision"]
    half = {"cpu": 2, "memory": 4096, "gpu": 1, "vCores": 2, "GPUs": 1}
    assert found["default"] == alice.get("/api/v2/virtual-clusters/default").json()
    assert found["default"] == {
        "capacity": 50,
        "usedCapacity": 50,
        "maxCapacity": 100,
        "dedicated": False,
        "resourcesUsed": half,
        "resourcesGuaranteed": half,
        "resourcesTotal": {"cpu": 4, "memory": 8192, "gpu": 2, "vCores": 4, "GPUs": 2},
    }


@pytest.mark.parametrize("query", ["nodes", "nodes=", "nodes=1"])
def test_gpus_of_nodes(alice: Any, query: str) -> None:
    expected = {"node1": {"gpuUsed": 1, "gpuAvailable": 1, "gpuTotal": 2}}
    assert alice.get(f"/api/v2/virtual-clusters?{query}").json() == expected


def test_names_of_virtual_clusters(alice: Any) -> None:
    missing, odd = alice.get("/api/v2/virtual-clusters/nowhere"), alice.get("/api/v2/virtual-clusters/a-b")
    assert (missing.status, missing.code) == (404, "NoVirtualClusterError")
    assert (odd.status, odd.code) == (400, "InvalidParametersError")


def test_virtual_clusters_cannot_be_changed(admin: Any) -> None:
    for method, tail in (("PUT", ""), ("DELETE", ""), ("PUT", "/status")):
        reply = admin.request(method, f"/api/v2/virtual-clusters/default{tail}")
        assert (reply.status, reply.code) == (403, "ForbiddenUserError")
        reply = admin.request(method, f"/api/v2/virtual-clusters/vision{tail}")
        assert (reply.status, reply.code) == (400, "NotImplementedError")


def test_sku_types(alice: Any) -> None:
    for path in (
        "/cluster/sku-types",
        "/cluster/sku-types?vc=default",
        "/virtual-clusters/default/sku-types",
    ):
        assert alice.get("/api/v2" + path).json() == {}
    for path in ("/cluster/sku-types?vc=nowhere", "/virtual-clusters/nowhere/sku-types"):
        assert alice.get("/api/v2" + path).code == "NoVirtualClusterError"


@pytest.fixture
def storages(services: Any, admin: Any) -> None:
    listed = [
        {
            "name": "nfs",
            "type": "nfs",
            "data": {"server": "10.0.0.1", "path": "/data"},
            "volumeName": "nfs-pv",
        },
        {"name": "blob", "type": "azureBlob", "data": {"containerName": "c"}, "share": False},
        {"name": "foreign", "type": "other"},
    ]
    (services.settings.data_dir / "storages.json").write_text(json.dumps(listed))
    granted = {"acls": {"storageConfigs": ["nfs", "blob", "gone"]}}
    admin.post("/api/v2/groups", {"groupname": "lab", "extension": granted})
    admin.put("/api/v2/users/alice/group", {"groupname": "lab"})


@pytest.mark.usefixtures("storages")
def test_storages_are_those_of_ones_groups(alice: Any, admin: Any) -> None:
    nfs = {"name": "nfs", "share": True, "volumeName": "nfs-pv", "default": True}
    blob = {"name": "blob", "share": False, "volumeName": "blob", "default": False}
    assert alice.get("/api/v2/storages").json() == {"storages": [nfs, blob]}
    assert alice.get("/api/v2/storages?default=true").json() == {"storages": [nfs]}
    assert admin.get("/api/v2/storages").json() == {"storages": []}


@pytest.mark.usefixtures("storages")
def test_one_storage(alice: Any, bob: Any) -> None:
    assert alice.get("/api/v2/storages/nfs").json() == {
        "name": "nfs",
        "share": True,
        "volumeName": "nfs-pv",
        "type": "nfs",
        "data": {"server": "10.0.0.1", "path": "/data"},
        "readOnly": False,
    }
    assert (bob.get("/api/v2/storages/nfs").status, bob.get("/api/v2/storages/nfs").code) == (
        403,
        "ForbiddenUserError",
    )
    for name in ("gone", "..%2f..%2fetc"):
        assert alice.get(f"/api/v2/storages/{name}").code == "NoStorageError"


@pytest.mark.usefixtures("storages")
def test_storages_in_the_shape_of_older_clients(alice: Any) -> None:
    mount = {"mountPoint": "/mnt/nfs", "path": "", "server": "nfs-pv", "permission": "rw"}
    config = {"name": "nfs", "default": True, "servers": ["nfs-pv"], "mountInfos": [mount]}
    server = {
        "spn": "nfs-pv",
        "type": "nfs",
        "data": {"server": "10.0.0.1", "path": "/data"},
        "extension": {},
    }
    assert alice.get("/api/v2/storage/config?names=nfs").json() == [config]
    assert alice.get("/api/v2/storage/config/nfs").json() == config
    assert alice.get("/api/v2/storage/server?names=nfs").json() == [server]
    assert alice.get("/api/v2/storage/server/nfs").json() == server
    assert len(alice.get("/api/v2/storage/server").json()) == 2
    assert alice.get("/api/v2/storage/config/none").code == "NoStorageError"


def test_a_broken_storage_file_says_so(alice: Any, services: Any) -> None:
    (services.settings.data_dir / "storages.json").write_text('[{"name": 1}]')
    reply = alice.get("/api/v2/storages")
    assert reply.status == 503 and "storages.json" in reply.json()["message"]


def test_what_is_empty_here(admin: Any, alice: Any, anonymous: Any) -> None:
    assert alice.get("/api/v2/alerts").json() == []
    for version in ("v1", "v2"):
        assert admin.get(f"/api/{version}/kubernetes/nodes").json()["items"] == []
        assert admin.get(f"/api/{version}/kubernetes/pods?namespace=x").json()["items"] == []
    empty = {"status": "success", "data": {"resultType": "vector", "result": []}}
    assert anonymous.get("/prometheus/api/v1/query?query=up").json() == empty
    assert anonymous.get("/view.html").status == 404
