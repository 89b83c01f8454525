"""What this server is and whether it is well."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import PlainTextResponse, Response

from openpaisdk.server.http import EXTENSIONS, Call, endpoint
from openpaisdk.version import __version__

# The OpenPAI release whose REST API is spoken here; clients read it as the version of the cluster.
API_LEVEL = "v1.8.1"


class ClusterInfo(msgspec.Struct):
    """The answer clients look at first."""

    name: str
    version: str
    launcherType: str
    authnMethod: str
    server: str
    extensions: list[str]


@endpoint("*", ("/api/v2/info", "/api/v1"), guard="none", returns=ClusterInfo)
async def cluster_info(call: Call) -> ClusterInfo:
    """Name, version and login method of the cluster."""
    return ClusterInfo(
        name="PAI RESTful API",
        version=API_LEVEL,
        launcherType="k8s",
        authnMethod="basic",
        server=f"openpaisdk {__version__}",
        extensions=list(EXTENSIONS),
    )


@endpoint("*", "/api/v2", guard="none", media="text/plain", returns=str)
async def banner(call: Call) -> Response:
    """A line of text that tells the API is here."""
    return PlainTextResponse("PAI RESTful API v2")


@endpoint("GET", "/healthz", guard="none", media="text/plain", returns=str)
async def health(call: Call) -> Response:
    """Answers as OpenPAI's gateway does, which is how clients find it."""
    return PlainTextResponse("Pylon ready: openpaisdk " + __version__)


@endpoint("GET", "/api/v2/openapi.json", guard="none", returns=dict[str, Any])
async def openapi(call: Call) -> Response:
    """This description of the API."""
    return Response(call.request.app.openapi(), media_type="application/json")


ENDPOINTS = [cluster_info, banner, health, openapi]
