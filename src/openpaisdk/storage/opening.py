"""From what a person writes to a storage and a path in it."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError, UsageError
from openpaisdk.storage.contract import readable_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.storage.contract import Storage

_HDFS_WEB_PORT = "9870"
# Where Hadoop's own protocol listens, which is not the one spoken here.
_HDFS_RPC_PORTS = ("8020", "8022", "9000", "9820")


def open_storage(address: str = "", cluster: Any = None) -> tuple[Storage, str]:
    """The storage that an address means, and the path in it.

    `scheme://...` says which; `NAME:PATH` is one of the cluster's own storages; anything else is a path on
    the cluster's storage, from its workspace on unless it starts with `/`. `cluster` may be a function that
    opens one.
    """
    scheme, mark, rest = address.partition("://")
    if mark:
        return _by_scheme(scheme.lower(), rest, address, cluster)
    readable_name(address, address)
    name, colon, path = address.partition(":")
    if colon and not name:
        raise UsageError(
            f"{address!r} names no storage before the colon",
            hint="write NAME:PATH; `opai storage list --storages` shows the names",
        )
    found = cluster() if callable(cluster) else cluster
    if found is None:
        raise UsageError(
            f"{address!r} needs a cluster", hint="write a whole address, such as s3://bucket/path"
        )
    if colon and "/" not in name:
        return _cluster_storage(found, name, path)
    return _on_cluster(found, address)


def _by_scheme(scheme: str, rest: str, address: str, cluster: Any) -> tuple[Storage, str]:
    if scheme == "file":
        from openpaisdk.storage.local import LocalStorage

        return LocalStorage("/"), "/" + rest.lstrip("/")
    if scheme in ("hdfs", "webhdfs", "swebhdfs", "http", "https"):
        place, _, path = readable_name(rest, address).partition("/")
        return _hdfs(scheme, place, path, cluster)
    if not scheme:
        from openpaisdk.storage.elsewhere import unknown

        raise unknown(address)
    from openpaisdk.storage.elsewhere import FsspecStorage

    return FsspecStorage(readable_name(address, address)), ""


def _hdfs(scheme: str, place: str, path: str, cluster: Any) -> tuple[Storage, str]:
    from openpaisdk.storage.webhdfs import WebHDFS

    user, at, host = place.rpartition("@")
    config = getattr(cluster() if scheme == "hdfs" and callable(cluster) else cluster, "config", None)
    uri = _web_uri(scheme, host, getattr(config, "hdfs_web_uri", None))
    if uri is None:
        raise UsageError(
            f"'{scheme}://{place}/{path}' names no host",
            hint=f"write {scheme}://HOST/PATH with the host of the NameNode",
        )
    if path.startswith("webhdfs/v1"):
        path = path[len("webhdfs/v1") :]
    import os

    name = user if at else os.environ.get("HADOOP_USER_NAME") or getattr(config, "user", None)
    token = os.environ.get("HADOOP_DELEGATION_TOKEN")
    return WebHDFS.at(uri, user=name, token=token), "/" + path.lstrip("/")


def _web_uri(scheme: str, place: str, known: str | None) -> str | None:
    """Where the NameNode's web port is; `known` is what the cluster's entry says. None without a host."""
    host, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = place, ""
    if scheme != "hdfs":
        return f"{'https' if scheme in ('swebhdfs', 'https') else 'http'}://{place}" if host else None
    if host and port and port not in _HDFS_RPC_PORTS:
        return f"http://{host}:{port}"
    return known or (f"http://{host}:{_HDFS_WEB_PORT}" if host else None)


def _on_cluster(cluster: Any, path: str) -> tuple[Storage, str]:
    config = cluster.config
    workspace = workspace_of(cluster)
    if "://" in workspace:
        if path.startswith("/"):
            return _by_scheme_root(workspace, path, cluster)
        store, root = open_storage(workspace, cluster)
        return store, f"{root.rstrip('/')}/{path}" if path else root
    full = path if path.startswith("/") else f"{workspace.rstrip('/')}/{path}".rstrip("/") or "/"
    from openpaisdk.storage.webhdfs import WebHDFS

    if config.hdfs_web_uri:
        return WebHDFS.at(config.hdfs_web_uri, user=config.user, verify=config.verify), full
    return WebHDFS.of_cluster(cluster), full


def _by_scheme_root(workspace: str, path: str, cluster: Any) -> tuple[Storage, str]:
    scheme, _, rest = workspace.partition("://")
    return open_storage(f"{scheme}://{rest.partition('/')[0]}{path}", cluster)


def workspace_of(cluster: Any) -> str:
    """The cluster's workspace: what its entry or the defaults say, otherwise the user's home over there."""
    from openpaisdk.config import setting

    found = cluster.config.workspace or setting("workspace")
    if found:
        return str(found)
    if cluster.config.hdfs_web_uri or has_files(cluster):
        return f"/user/{cluster.user}"
    raise UsageError(
        f"the cluster {cluster.config.alias} has no storage that is known",
        hint="name one: `opai cluster add -a ALIAS --workspace ADDRESS`, or write a whole address",
    )


def has_files(cluster: Any) -> bool:
    """Whether the cluster is our own server, which keeps files itself."""
    if not cluster.extensions:
        cluster.request("GET", "/api/v2/info")
    return "files" in cluster.extensions


def _cluster_storage(cluster: Any, name: str, path: str) -> tuple[Storage, str]:
    try:
        found = cluster.storage(name)
    except NotFoundError:
        known = ", ".join(str(row.get("name")) for row in cluster.storages()) or "none"
        raise NotFoundError(
            f"the cluster has no storage called {name!r}", hint=f"it has: {known}; paths need no name"
        ) from None
    data = found.get("data") or {}
    kind = str(found.get("type") or data.get("type") or "")
    from openpaisdk.storage.elsewhere import FsspecStorage

    if kind == "azureBlob":
        options = {"account_name": data.get("accountName"), "account_key": data.get("accountKey")}
        return FsspecStorage(f"abfs://{data.get('containerName')}", **options), path
    if kind == "samba":
        options = {"username": found.get("username"), "password": found.get("password")}
        return FsspecStorage(f"smb://{data.get('address')}{data.get('path', '/')}", **options), path
    raise UsageError(
        f"the storage {name!r} is {kind or 'of an unknown kind'}, which only jobs can reach",
        hint="mount it on this machine, or use it inside a job",
    )
