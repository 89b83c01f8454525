"""What OpenPAI's portal and clients ask besides: alerts, Kubernetes lists and Prometheus, empty here."""

from __future__ import annotations

from typing import Any

from openpaisdk.server.http import Call, endpoint


@endpoint("GET", "/api/v2/alerts", returns=list[dict[str, Any]])
async def list_alerts(call: Call) -> list[dict[str, Any]]:
    """Firing alerts: there is no alert manager behind this server, so none."""
    return []


@endpoint(
    "GET",
    ("/api/v2/kubernetes/nodes", "/api/v1/kubernetes/nodes"),
    guard="check-admin",
    returns=dict[str, Any],
)
async def list_kubernetes_nodes(call: Call) -> dict[str, Any]:
    """Kubernetes nodes: none, tasks are not pods here."""
    return {"kind": "NodeList", "apiVersion": "v1", "items": []}


@endpoint(
    "GET", ("/api/v2/kubernetes/pods", "/api/v1/kubernetes/pods"), guard="check-admin", returns=dict[str, Any]
)
async def list_kubernetes_pods(call: Call) -> dict[str, Any]:
    """Kubernetes pods: none, tasks are not pods here."""
    return {"kind": "PodList", "apiVersion": "v1", "items": []}


@endpoint(
    "GET",
    ("/prometheus/api/v1/query", "/prometheus/api/v1/query_range"),
    guard="none",
    returns=dict[str, Any],
)
async def query_prometheus(call: Call) -> dict[str, Any]:
    """An empty result, so that pages with metrics show none instead of failing."""
    kind = "matrix" if call.request.url.path.rstrip("/").lower().endswith("range") else "vector"
    return {"status": "success", "data": {"resultType": kind, "result": []}}


ENDPOINTS = [list_alerts, list_kubernetes_nodes, list_kubernetes_pods, query_prometheus]
