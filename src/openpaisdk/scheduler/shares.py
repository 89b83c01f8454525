"""What virtual clusters are guaranteed and users are allowed, and how much of it is taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import floor

from .model import Quota, VirtualCluster
from .state import COUNTED, NOTHING, Ask, Job, Task, Vector, plus

JOBS = 3
QUOTA_WORDS = ("CPU", "memory", "GPU", "jobs")


class ShareState:
    """A virtual cluster: its share in numbers, and what its jobs hold.

    `used` counts prod and test jobs, which live off the share; `lent` what oppo jobs hold, which do not.
    """

    __slots__ = ("booked", "declared", "jobs", "lent", "name", "share", "used", "whole")

    def __init__(self, declared: VirtualCluster) -> None:
        self.name = declared.name
        self.declared = declared
        self.share: Vector = NOTHING
        self.whole = False
        self.used: Vector = NOTHING
        self.lent: Vector = NOTHING
        self.booked: Vector = NOTHING
        self.jobs: dict[str, Job] = {}

    def measure(self, total: Vector) -> None:
        """Turn the declaration into numbers for a cluster of this size."""
        given = (self.declared.cpu, self.declared.memory_mb, self.declared.gpu)
        # A hair is added because 0.29 * 100 is 28.999999999999996.
        parts = [
            floor(total[d] * self.declared.share + 1e-9) if number is None else min(number, total[d])
            for d, number in zip(COUNTED, given)
        ]
        self.share = (parts[0], parts[1], parts[2], total[3])
        self.whole = all(self.share[d] >= total[d] for d in COUNTED)

    def could_hold(self, wanted: Vector) -> bool:
        """Whether the share is large enough for this at all."""
        share = self.share
        return wanted[0] <= share[0] and wanted[1] <= share[1] and wanted[2] <= share[2]

    def has_room(self, wanted: Vector) -> bool:
        """Whether this fits into what is left of the share now; a resource not asked for may be overdrawn."""
        left = plus(plus(self.share, self.used, -1), self.booked, -1)
        return (
            (not wanted[0] or wanted[0] <= left[0])
            and (not wanted[1] or wanted[1] <= left[1])
            and (not wanted[2] or wanted[2] <= left[2])
        )

    def over(self, used: Vector) -> list[int]:
        """In which resources `used` is more than the share."""
        return [d for d in COUNTED if used[d] > self.share[d]]


class UserState:
    """What one user holds."""

    __slots__ = ("booked", "booked_jobs", "jobs", "used")

    def __init__(self) -> None:
        self.used: Vector = NOTHING
        self.jobs = 0
        self.booked: Vector = NOTHING
        self.booked_jobs = 0


class Shares:
    """All virtual clusters and users."""

    def __init__(
        self, clusters: Iterable[VirtualCluster], quotas: Mapping[str, Quota], total: Vector
    ) -> None:
        self.clusters: dict[str, ShareState] = {}
        self.users: dict[str, UserState] = {}
        self.quotas: dict[str, Quota] = {}
        self.change(clusters, quotas, total)

    def change(self, clusters: Iterable[VirtualCluster], quotas: Mapping[str, Quota], total: Vector) -> None:
        """Virtual clusters and quotas are these now; one that left keeps its jobs and has no share."""
        wanted = {cluster.name: cluster for cluster in clusters}
        self.quotas = dict(quotas)
        for name, state in self.clusters.items():
            state.declared = wanted.pop(name, VirtualCluster(name, share=0.0))
        for name, cluster in wanted.items():
            self.clusters[name] = ShareState(cluster)
        self.measure(total)

    def measure(self, total: Vector) -> None:
        """The cluster has this size now."""
        for state in self.clusters.values():
            state.measure(total)

    def cluster(self, name: str) -> ShareState:
        """A virtual cluster nobody declared has no share: its jobs live off what is idle."""
        state = self.clusters.get(name)
        if state is None:
            state = self.clusters[name] = ShareState(VirtualCluster(name, share=0.0))
        return state

    def user(self, name: str) -> UserState:
        state = self.users.get(name)
        if state is None:
            state = self.users[name] = UserState()
        return state

    def quota(self, user: str) -> Quota | None:
        return self.quotas.get(user) or self.quotas.get("*")

    def hold(self, task: Task) -> None:
        """A task got its resources."""
        job = task.job
        cluster, user = self.cluster(job.info.vc), self.user(job.info.user)
        if job.oppo:
            cluster.lent = plus(cluster.lent, task.needs)
        else:
            cluster.used = plus(cluster.used, task.needs)
        user.used = plus(user.used, task.needs)
        if job.live == 0:
            user.jobs += 1
            cluster.jobs[job.info.id] = job
        job.live += 1

    def release(self, task: Task) -> None:
        """A task gave its resources back."""
        job = task.job
        cluster, user = self.cluster(job.info.vc), self.user(job.info.user)
        if job.oppo:
            cluster.lent = plus(cluster.lent, task.needs, -1)
        else:
            cluster.used = plus(cluster.used, task.needs, -1)
        user.used = plus(user.used, task.needs, -1)
        job.live -= 1
        if job.live == 0:
            user.jobs -= 1
            del cluster.jobs[job.info.id]

    def lacking(self, ask: Ask) -> list[int]:
        """In which dimensions (CPU, MEMORY, GPU, JOBS) the user's quota does not allow this ask now."""
        quota = self.quota(ask.job.info.user)
        if quota is None:
            return []
        user = self.user(ask.job.info.user)
        limits = (quota.cpu, quota.memory_mb, quota.gpu)
        found = [
            d
            for d in COUNTED
            if (limit := limits[d]) is not None
            and ask.total[d]
            and user.used[d] + user.booked[d] + ask.total[d] > limit
        ]
        if quota.jobs is not None and ask.job.live == 0 and user.jobs + user.booked_jobs + 1 > quota.jobs:
            found.append(JOBS)
        return found

    def book(self, ask: Ask) -> None:
        """Count an ask that has room kept for it as if it ran."""
        user = self.user(ask.job.info.user)
        user.booked = plus(user.booked, ask.total)
        user.booked_jobs += ask.job.live == 0
        if not ask.job.oppo:
            cluster = self.cluster(ask.job.info.vc)
            cluster.booked = plus(cluster.booked, ask.total)

    def clear_bookings(self, asks: Iterable[Ask]) -> None:
        """Forget what `book` counted."""
        for ask in asks:
            user = self.user(ask.job.info.user)
            user.booked, user.booked_jobs = NOTHING, 0
            self.cluster(ask.job.info.vc).booked = NOTHING
