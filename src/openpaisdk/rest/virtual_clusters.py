"""Virtual clusters: shares of the cluster, what they hold and what is free."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError
from openpaisdk.rest.calls import Calls, lacks_api
from openpaisdk.transport import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class VirtualClusters(Calls):
    """Virtual clusters and resource kinds."""

    def virtual_clusters(self) -> dict[str, dict[str, Any]]:
        """Every virtual cluster by name."""
        return self._object("GET", "/api/v2/virtual-clusters")

    def virtual_cluster(self, name: str) -> dict[str, Any]:
        """One virtual cluster."""
        return self._object("GET", f"/api/v2/virtual-clusters/{quote(name)}")

    def node_gpus(self) -> dict[str, dict[str, Any]]:
        """GPUs used, free and in all, by node."""
        return self._object("GET", "/api/v2/virtual-clusters", query={"nodes": True})

    def sku_types(self, virtual_cluster: str | None = None) -> dict[str, dict[str, Any]]:
        """Kinds of resource slots by name; none where the cluster has no such kinds or is too old to tell."""
        try:
            return self._object("GET", "/api/v2/cluster/sku-types", query={"vc": virtual_cluster})
        except NotFoundError as error:
            if lacks_api(error):
                return {}
            raise

    def update_virtual_cluster(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        """Change or make a virtual cluster. For admins; Kubernetes clusters refuse it."""
        return self._object("PUT", f"/api/v2/virtual-clusters/{quote(name)}", send=data, safe=True)

    def set_virtual_cluster_status(self, name: str, status: str) -> dict[str, Any]:
        """Stop or resume a virtual cluster. For admins; Kubernetes clusters refuse it."""
        path = f"/api/v2/virtual-clusters/{quote(name)}/status"
        return self._object("PUT", path, send={"vcStatus": status}, safe=True)

    def delete_virtual_cluster(self, name: str) -> dict[str, Any]:
        """Delete a virtual cluster. For admins; Kubernetes clusters refuse it."""
        return self._object("DELETE", f"/api/v2/virtual-clusters/{quote(name)}")
