"""Addresses: what each means, and a sentence for those that mean nothing."""

from __future__ import annotations

import socket
import sys
from types import SimpleNamespace

import pytest

from openpaisdk.errors import OpenPAIError, UnavailableError, UsageError
from openpaisdk.storage import open_storage


def cluster(web_uri: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(config=SimpleNamespace(hdfs_web_uri=web_uri, user="ann"))


def refused(address: str) -> OpenPAIError:
    with pytest.raises(OpenPAIError) as caught:
        open_storage(address, cluster())
    assert caught.value.hint
    return caught.value


def test_an_unknown_kind_is_said_with_and_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        for address in ("foo://x", "://x"):
            error = refused(address)
            assert error.message == f"{address}: unknown kind of address"
            assert "hdfs" in str(error.hint) and "sftp" in str(error.hint) and "oss" in str(error.hint)
        monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install 'openpaisdk[sftp]'" in str(refused("sftp://host/x").hint)
    assert "pip install fsspec ossfs" in str(refused("oss://bucket/x").hint)


@pytest.mark.parametrize(
    ("address", "known", "web"),
    [
        ("hdfs://host/x", None, "http://host:9870"),
        ("hdfs://host:8020/x", None, "http://host:9870"),
        ("hdfs://ann@host:9000/x", None, "http://host:9870"),
        ("hdfs://host:14000/x", None, "http://host:14000"),
        ("hdfs://host:14000/x", "http://web:1", "http://host:14000"),
        ("hdfs://host:9820/x", "http://web:1", "http://web:1"),
        ("hdfs:///x", "http://web:1", "http://web:1"),
        ("hdfs://[::1]:8022/x", None, "http://[::1]:9870"),
        ("hdfs://[::1]/x", None, "http://[::1]:9870"),
        ("swebhdfs://host:9871/x", None, "https://host:9871"),
    ],
)
def test_the_web_port_of_hdfs(address: str, known: str | None, web: str) -> None:
    store, path = open_storage(address, cluster(known))
    assert (store.address, path) == (web, "/x")


@pytest.mark.parametrize("address", ["hdfs://", "hdfs:///x", "webhdfs:///x", "http://", "hdfs://:8020/x"])
def test_hdfs_without_a_host_is_said(address: str) -> None:
    error = refused(address)
    assert isinstance(error, UsageError) and "names no host" in error.message


@pytest.mark.parametrize("address", ["sftp://", "sftp:///x", "ssh://ann@/x"])
def test_sftp_without_a_host_is_said(address: str) -> None:
    error = refused(address)
    assert isinstance(error, UsageError) and "names no host" in error.message


def test_a_host_that_nobody_knows_is_a_failure_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = refused("sftp://nosuchhost/x")
    assert isinstance(error, UnavailableError) and error.exit_code == 6
    assert "the host is not known" in error.message


def test_a_colon_without_a_storage_is_said() -> None:
    error = refused(":x")
    assert isinstance(error, UsageError) and "':x' names no storage" in error.message
