"""What the cluster says about itself: version, ways to log in, alerts, nodes, server status."""

from __future__ import annotations

from openpaisdk.rest.calls import Calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Info(Calls):
    """General information."""

    def info(self) -> dict[str, Any]:
        """Name, version, launcher type and way to log in; needs no login."""
        found = self._json("GET", "/api/v2/info", authorised=False)
        return dict(found)

    def authn_info(self) -> dict[str, Any]:
        """How to log in: `authn_type` basic or OIDC, and where."""
        return self._object("GET", "/api/v2/authn/info", authorised=False)

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts in force; mine only, unless I am an admin. Servers before 1.8 have none."""
        return self._array("GET", "/api/v2/alerts")

    def kubernetes_nodes(self) -> dict[str, Any]:
        """The nodes as Kubernetes describes them; for admins."""
        return self._object("GET", "/api/v2/kubernetes/nodes")

    def kubernetes_pods(
        self, *, namespace: str | None = None, label_selector: str | None = None
    ) -> dict[str, Any]:
        """The pods as Kubernetes describes them; for admins."""
        query = {"namespace": namespace, "labelSelector": label_selector}
        return self._object("GET", "/api/v2/kubernetes/pods", query=query)

    def server_status(self) -> dict[str, Any]:
        """Process, data folder, launcher, capacity and load of our own server; for admins."""
        return self._object("GET", "/api/v2/server")

    def stop_server(self) -> dict[str, Any]:
        """Stop our own server; running tasks go on. For admins, on the machine itself."""
        return self._object("POST", "/api/v2/server/stop")
