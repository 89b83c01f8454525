"""Code on a storage that a cluster's jobs can reach: files by content below `<workspace>/.blobs`."""

from __future__ import annotations

from openpaisdk.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from openpaisdk.storage.webhdfs import WebHDFS
    from openpaisdk.workspace.shipping import Plan

AT_ONCE = 8


class JobStorage:
    """The workspace as jobs reach it: a WebHDFS storage and the folder in it."""

    __slots__ = ("root", "store", "verify")

    def __init__(self, store: WebHDFS, root: str, verify: bool | str) -> None:
        self.store = store
        self.root = root.rstrip("/")
        self.verify = verify

    def for_runtime(self) -> dict[str, Any]:
        """What the runtime inside a job needs to know; `token` is a secret."""
        login = self.store.login
        return {
            "uri": self.store.address,
            "path": self.root,
            "user": login.get("user.name", ""),
            "token": login.get("delegation", ""),
            # A file of certificates is on this machine only.
            "verify": self.verify is True,
        }

    def send(self, plan: Plan, job: str, on_sent: Callable[[int, int], Any] | None = None) -> int:
        """Send what is not there yet; how many bytes. May be repeated."""
        from openpaisdk.storage.contract import BytesSource, FileSource

        blobs = f"{self.root}/.blobs"
        self.store.mkdir(blobs)
        known = {entry.name for entry in self.store.list(blobs)}
        wanted = {digest: file for digest, file in plan.contents.items() if digest not in known}
        total, sent = sum(file.size for file in wanted.values()), 0

        def put(digest: str) -> int:
            file = wanted[digest]
            self.store.write(f"{blobs}/{digest}", FileSource(file.path), overwrite=True)
            return file.size

        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for size in pool.map(put, wanted):
                sent += size
                if on_sent is not None:
                    on_sent(sent, total)
        manifest = BytesSource(plan.manifest)
        if plan.sha256 not in known:
            self.store.write(f"{blobs}/{plan.sha256}", manifest, overwrite=True)
        self.store.write(f"{self.root}/jobs/{job}/code/manifest.json", manifest, overwrite=True)
        return sent


def job_storage(cluster: Any) -> JobStorage | None:
    """The cluster's workspace where its jobs can reach it, which takes WebHDFS; None where there is none."""
    from openpaisdk.storage import WebHDFS, open_storage, workspace_of

    try:
        store, root = open_storage(workspace_of(cluster), cluster)
    except UsageError:
        return None
    if not isinstance(store, WebHDFS) or store.ours:
        return None
    return JobStorage(store, root, cluster.config.verify)
