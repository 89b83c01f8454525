"""Storages that groups are granted, as the administrator lists them in `storages.json` of the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from openpaisdk.errors import AccessError, ConfigError, NotFoundError
from openpaisdk.server.http import Call, endpoint

StorageType = Literal["nfs", "azureFile", "azureBlob", "samba", "dshuttle", "other", "unknown"]


class StorageDetail(msgspec.Struct):
    """One storage with what is needed to mount it."""

    name: str
    share: bool = True
    volumeName: str = ""
    type: StorageType = "unknown"
    data: dict[str, Any] = {}
    readOnly: bool = False
    secretName: str | UnsetType = UNSET
    mountOptions: list[str] | UnsetType = UNSET


class StorageSummary(msgspec.Struct):
    """One storage in the list."""

    name: str
    share: bool
    volumeName: str
    default: bool


class StorageList(msgspec.Struct):
    """The storages of the caller."""

    storages: list[StorageSummary]


class StorageQuery(msgspec.Struct):
    """`default=true` leaves only the first storage of each group."""

    default: str = ""


class NamesQuery(msgspec.Struct):
    """Names separated by commas; all when empty."""

    names: str = ""


def defined(settings: Any) -> dict[str, StorageDetail]:
    """Every storage of this cluster by name."""
    path = Path(settings.data_dir) / "storages.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[StorageDetail])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise ConfigError(f"storages.json of the server is not valid: {error}", http_status=503) from error
    return {storage.name: storage for storage in found}


def granted(call: Call) -> dict[str, StorageDetail]:
    """The storages that the caller's groups have; being an admin gives none."""
    known = defined(call.services.settings)
    wanted = call.services.accounts.rights(call.caller.name).storages
    return {name: known[name] for name in wanted if name in known}


def _one(call: Call) -> StorageDetail:
    name = call.path["name"]
    storage = defined(call.services.settings).get(name)
    if storage is None:
        raise NotFoundError(f"Storage {name} is not found.", code="NoStorageError")
    if name not in granted(call):
        raise AccessError(f"User {call.caller.name} is not allowed to access {name}.")
    return storage


@endpoint("GET", "/api/v2/storages", query=StorageQuery, returns=StorageList, errors=(503,))
async def list_storages(call: Call) -> StorageList:
    """The storages of the caller."""
    defaults = call.services.accounts.rights(call.caller.name).default_storages
    shown = [
        StorageSummary(name, storage.share, storage.volumeName or name, name in defaults)
        for name, storage in granted(call).items()
    ]
    if call.query.default == "true":
        shown = [storage for storage in shown if storage.default]
    return StorageList(shown)


@endpoint("GET", "/api/v2/storages/{name}", returns=StorageDetail, errors=(403, 503))
async def get_storage(call: Call) -> StorageDetail:
    """One storage with what is needed to mount it."""
    return _one(call)


def _config(call: Call, storage: StorageDetail) -> dict[str, Any]:
    volume = storage.volumeName or storage.name
    defaults = call.services.accounts.rights(call.caller.name).default_storages
    mount = {"mountPoint": f"/mnt/{storage.name}", "path": "", "server": volume, "permission": "rw"}
    return {
        "name": storage.name,
        "default": storage.name in defaults,
        "servers": [volume],
        "mountInfos": [mount],
    }


def _server(storage: StorageDetail) -> dict[str, Any]:
    volume = storage.volumeName or storage.name
    return {"spn": volume, "type": storage.type, "data": storage.data, "extension": {}}


def _named(call: Call) -> list[StorageDetail]:
    names = [name for name in call.query.names.split(",") if name]
    return [storage for name, storage in granted(call).items() if not names or name in names]


@endpoint("GET", "/api/v2/storage/config", query=NamesQuery, returns=list[dict[str, Any]], errors=(503,))
async def list_storage_configs(call: Call) -> list[dict[str, Any]]:
    """Storages in the shape of older clients: where they are mounted."""
    return [_config(call, storage) for storage in _named(call)]


@endpoint("GET", "/api/v2/storage/config/{name}", returns=dict[str, Any], errors=(403, 503))
async def get_storage_config(call: Call) -> dict[str, Any]:
    """One storage in the shape of older clients: where it is mounted."""
    return _config(call, _one(call))


@endpoint("GET", "/api/v2/storage/server", query=NamesQuery, returns=list[dict[str, Any]], errors=(503,))
async def list_storage_servers(call: Call) -> list[dict[str, Any]]:
    """Storages in the shape of older clients: where they are served."""
    return [_server(storage) for storage in _named(call)]


@endpoint("GET", "/api/v2/storage/server/{name}", returns=dict[str, Any], errors=(403, 503))
async def get_storage_server(call: Call) -> dict[str, Any]:
    """One storage in the shape of older clients: where it is served."""
    return _server(_one(call))


ENDPOINTS = [
    list_storages,
    get_storage,
    list_storage_configs,
    get_storage_config,
    list_storage_servers,
    get_storage_server,
]
