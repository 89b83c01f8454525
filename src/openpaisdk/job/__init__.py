"""Job: describe it, submit it, watch it, and wait for it like a Future."""

from __future__ import annotations

from openpaisdk.job.code import names_local_files, send_code
from openpaisdk.job.elsewhere import as_sent
from openpaisdk.job.outcome import ENDED, Outcome, failure, outcome
from openpaisdk.job.spec import DEFAULT_IMAGE, JobSpec, default
from openpaisdk.job.surroundings import with_surroundings
from openpaisdk.job.words import clone_stem, command_text, exports, install_lines, name_stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from openpaisdk.core import Cluster
    from openpaisdk.protocol import Document

__all__ = ["DEFAULT_IMAGE", "Job", "JobSpec", "Outcome"]

_open_clusters: dict[str | None, Any] = {}


class Job(JobSpec):
    """One job, from description to outcome.

    >>> job = Job.from_command("python train.py --lr 0.1", gpu=1).submit()   # doctest: +SKIP
    >>> job.result()["state"]                                                # doctest: +SKIP
    'SUCCEEDED'
    """

    def __init__(self, name: str | None = None, **spec: Any) -> None:
        """A job without task roles yet; `spec` takes the protocol's own keys."""
        super().__init__(name, **spec)
        self.cluster: Cluster | None = None
        self.user: str | None = None
        # Paths to send along, none of them meaning the current folder; None sends nothing.
        self._sources: Sequence[str] | None = None
        self._needs_source = False

    def __repr__(self) -> str:
        return f"<Job {self.name}{f' of {self.user}' if self.user else ''}>"

    @classmethod
    def from_command(
        cls,
        command: str | Sequence[str],
        *,
        name: str | None = None,
        role: str = "worker",
        image: str | None = None,
        gpu: int | None = None,
        cpu: int | None = None,
        mem: int | None = None,
        instances: int | None = None,
        ports: Mapping[str, int] | None = None,
        env: Mapping[str, str] | None = None,
        packages: Iterable[str] = (),
        vc: str | None = None,
        source: str | Sequence[str] | None = None,
    ) -> Job:
        """A job of one task role; without a name it gets one made from the command, never used before.

        `source` names files, folders or globs to send along. Without it the current folder is sent if the
        command names a file in it; an empty list sends nothing.
        """
        from openpaisdk.protocol import unique_name

        text = command_text(command)
        job = cls(name or unique_name(name_stem(text)))
        commands = [*exports(env or {}), *install_lines(packages), text]
        job.task_role(
            role, commands, image=image, gpu=gpu, cpu=cpu, mem=mem, instances=instances, ports=ports
        )
        wanted_vc = vc or default("vc")
        if wanted_vc:
            job.spec["defaults"] = {"virtualCluster": wanted_vc}
        job.spec.setdefault("extras", {})["submitFrom"] = "openpaisdk"
        if source is None:
            job._sources = () if names_local_files(text) else None
        elif source:
            job.source(*([source] if isinstance(source, str) else source))
        return job

    @classmethod
    def from_file(cls, path: str | Path) -> Job:
        """A job from a v2 YAML or JSON file, or a v1 JSON file; `-` is standard input."""
        from openpaisdk.protocol import load_file

        return cls._from_document(load_file(str(path)))

    @classmethod
    def from_text(cls, text: str, source: str = "<text>") -> Job:
        """A job from the text of a job file; `source` is its name in messages."""
        from openpaisdk.protocol import load

        return cls._from_document(load(text, source))

    @classmethod
    def _from_document(cls, document: Document) -> Job:
        from openpaisdk.errors import InvalidJobError
        from openpaisdk.protocol import check, check_v1, from_v1, is_v1

        data = document.data
        if isinstance(data, dict) and is_v1(data):
            problems = check_v1(document)
            if problems:
                raise InvalidJobError(f"{document.source} is not a valid v1 job", problems=problems)
            return cls.from_dict(from_v1(data))
        if not isinstance(data, dict):
            raise InvalidJobError(f"{document.source} is not a job", problems=check(document))
        job = cls.from_dict(data)
        job._document = document
        return job

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Job:
        """A job around this spec, kept as it is, right or wrong; `check` tells."""
        job = cls(name="placeholder")
        job.spec = spec
        return job

    @classmethod
    def from_cluster(cls, name: str, cluster: Cluster | str | None = None, *, user: str | None = None) -> Job:
        """A job that is already on a cluster."""
        from openpaisdk.protocol import split_job

        found = open_cluster(cluster)
        owner, short = split_job(name, user or found.user)
        job = cls.from_dict(found.job_config(short, user=owner))
        job.spec.setdefault("name", short)
        job.cluster, job.user = found, owner
        return job

    def source(self, *paths: str) -> Job:
        """Send these files, folders or globs along, the current folder when none is named."""
        self._sources, self._needs_source = paths, True
        return self

    def submit(self, cluster: Cluster | str | None = None) -> Job:
        """Check and send it, with its code; returns itself.

        `cluster` is one, or an alias. Without it the job goes where it came from, else to the default one.
        """
        from openpaisdk.errors import InvalidJobError

        problems = self.check()
        if problems:
            raise InvalidJobError(f"job {self.name} is not valid", problems=problems)
        self.cluster = open_cluster(self.cluster if cluster is None else cluster)
        if self._sources is not None:
            send_code(self.spec, self.cluster, self._sources, required=self._needs_source)
        accepted = self.cluster.submit(as_sent(with_surroundings(self.spec, self.cluster), self.cluster))
        self.user = accepted.get("user") or self.cluster.user
        return self

    def clone(self, name: str | None = None) -> Job:
        """A copy that is not submitted yet, under a new name."""
        import copy

        from openpaisdk.protocol import unique_name

        twin = Job.from_dict(copy.deepcopy(self.spec))
        twin.spec["name"] = name or unique_name(clone_stem(self.name))
        twin.cluster = self.cluster
        twin._sources, twin._needs_source = self._sources, self._needs_source
        return twin

    def _home(self) -> Cluster:
        from openpaisdk.errors import UsageError

        if self.cluster is None or self.user is None:
            raise UsageError(f"job {self.name} has not been submitted", hint="call submit() first")
        return self.cluster

    @property
    def link(self) -> str:
        """Where a browser shows the job."""
        return self._home().job_link(self.name, user=self.user)

    def detail(self) -> dict[str, Any]:
        """All that the cluster tells about it: state, times, tasks."""
        return self._home().job(self.name, user=self.user)

    def status(self) -> str:
        """WAITING, RUNNING, STOPPING, SUCCEEDED, FAILED or STOPPED."""
        return str(self.detail()["jobStatus"]["state"])

    def logs(self, **choice: Any) -> Iterator[Any]:
        """What its tasks print; see `Cluster.follow` for the choice of tasks and streams."""
        return self._home().follow(self.name, user=self.user, **choice)

    def stop(self) -> Job:
        """Ask it to stop; `wait` tells when it has."""
        self._home().stop(self.name, user=self.user)
        return self

    def wait(self, timeout: float | None = None) -> Outcome:
        """Wait for the end, whatever it is."""
        return outcome(self._home().wait(self.name, user=self.user, timeout=timeout))

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.status() in ENDED

    def running(self) -> bool:
        """Whether it runs just now."""
        return self.status() == "RUNNING"

    def cancelled(self) -> bool:
        """Whether it was stopped."""
        return self.status() == "STOPPED"

    def cancel(self) -> bool:
        """Stop it; False when it has already ended."""
        if self.done():
            return False
        self.stop()
        return True

    def result(self, timeout: float | None = None) -> Outcome:
        """Wait for success; a failed or stopped job raises JobFailedError or JobStoppedError."""
        found = self.wait(timeout)
        problem = failure(found)
        if problem:
            raise problem
        return found

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait for the end: None for success, else what `result` would raise."""
        return failure(self.wait(timeout))


def open_cluster(cluster: Cluster | str | None) -> Cluster:
    """The cluster itself, or the one with this alias; opened once per process."""
    if cluster is not None and not isinstance(cluster, str):
        return cluster
    if cluster not in _open_clusters:
        from openpaisdk.core import Cluster as Opened

        _open_clusters[cluster] = Opened.open(cluster)
    found: Cluster = _open_clusters[cluster]
    return found
