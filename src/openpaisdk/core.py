"""`Cluster`: one typed method for every operation of OpenPAI's REST API, on servers from 1.0 on and ours."""

from __future__ import annotations

import os

from openpaisdk.config import ClusterConfig, get_cluster
from openpaisdk.errors import ConfigError, NotFoundError
from openpaisdk.rest.attempts import Attempts
from openpaisdk.rest.execution import Execution
from openpaisdk.rest.following import Following, LogLine, StateChange
from openpaisdk.rest.groups import Groups
from openpaisdk.rest.info import Info
from openpaisdk.rest.jobs import STATES, TERMINAL
from openpaisdk.rest.storages import Storages
from openpaisdk.rest.submission import Submission
from openpaisdk.rest.tokens import Tokens
from openpaisdk.rest.users import Users
from openpaisdk.rest.virtual_clusters import VirtualClusters
from openpaisdk.rest.waiting import Waiting, WaitTimeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from openpaisdk.transport import Double, Transport

__all__ = [
    "STATES",
    "TERMINAL",
    "Client",
    "Cluster",
    "LogLine",
    "OpenPAIClient",
    "StateChange",
    "WaitTimeout",
    "in_job_container",
]


class Cluster(
    Info,
    Tokens,
    Users,
    Groups,
    VirtualClusters,
    Storages,
    Submission,
    Attempts,
    Execution,
    Waiting,
    Following,
):
    """A cluster as one user sees it.

    Built from explicit values, a `ClusterConfig`, or what is configured (`Cluster()`, `Cluster.open`).
    Nothing is sent before the first call; the embedded cluster is started when it is the one meant.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        pai_uri: str | None = None,
        user: str | None = None,
        passwd: str | None = None,
        token: str | None = None,
        verify: bool | str = True,
        transport: Transport | Double | None = None,
        **options: Any,
    ) -> None:
        if config is None:
            if pai_uri is None:
                config = get_cluster(None)
                options.setdefault("remember", True)
            else:
                config = ClusterConfig(pai_uri, pai_uri, user=user, passwd=passwd, token=token, verify=verify)
        super().__init__(config, transport=transport, **options)

    @classmethod
    def open(
        cls,
        alias: str | None = None,
        *,
        timeout: float | None = None,
        notice: Callable[[str], Any] | None = None,
        on_local_start: Callable[[dict[str, Any]], Any] | None = None,
    ) -> Cluster:
        """The cluster of that alias, or the one in force; starts the embedded one where that is meant.

        `notice` gets a sentence when a call has to wait, `on_local_start` what the embedded cluster offers
        when this call (or a later one, after a crash) started it.
        """
        if timeout is None:
            from openpaisdk.config import setting

            timeout = float(setting("timeout"))
        return cls(
            get_cluster(alias), timeout=timeout, notice=notice, on_local_start=on_local_start, remember=True
        )

    @classmethod
    def from_json(
        cls, path: str | os.PathLike[str], alias: str | None = None, **options: Any
    ) -> tuple[Cluster, ClusterConfig]:
        """A cluster of a clusters file, and its entry; the alias may be left out where there is only one."""
        from openpaisdk.config import load_clusters, nearest

        known = load_clusters(path)
        if alias is None:
            if len(known) != 1:
                raise ConfigError(
                    f"{os.fspath(path)} has {len(known)} clusters and none is chosen",
                    hint="give an alias: " + ", ".join(sorted(known)),
                )
            alias = next(iter(known))
        if alias not in known:
            meant = nearest(alias, known)
            raise NotFoundError(
                f"there is no cluster called {alias!r} in {os.fspath(path)}",
                hint=f"did you mean `{meant}`?"
                if meant
                else "there are: " + (", ".join(sorted(known)) or "none"),
            )
        return cls(known[alias], remember=True, **options), known[alias]

    @classmethod
    def from_env(cls, **options: Any) -> Cluster:
        """The cluster that the environment describes, as inside a job: `OPAI_PAI_URI`, `OPAI_TOKEN` ..."""
        from openpaisdk.config import from_env

        config = from_env()
        if config is None:
            raise ConfigError(
                "the environment describes no cluster",
                hint="set OPAI_PAI_URI, OPAI_USER and OPAI_TOKEN (or OPAI_PASSWD)",
            )
        return cls(config, **options)

    def job_link(self, name: str, user: str | None = None) -> str:
        """The page of a job on the cluster's portal."""
        from openpaisdk.transport import quote

        owner, tilde, short = name.partition("~")
        if not tilde:
            owner, short = user or self.user, name
        return f"{self.portal_uri}/job-detail.html?username={quote(owner)}&jobName={quote(short)}"

    def close(self) -> None:
        """Close the connections that this thread keeps."""
        self.transport.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cluster({self.config.alias!r}, {self.portal_uri!r}, user={self.config.user!r})"


Client = OpenPAIClient = Cluster


def in_job_container() -> bool:
    """Whether this program runs inside a job."""
    known = os.environ.get
    return bool(known("PAI_CONTAINER_ID") or (known("PAI_JOB_NAME") and known("PAI_TASK_INDEX")))
