"""Where a program runs: on a local machine or in a job, in which role, and where its peers are."""

import os

LOCAL, INTERACTIVE, BATCH = "local", "interactive", "batch"
PLACES = (LOCAL, INTERACTIVE, BATCH)


class Peer:
    """One task of the job: role, index, host and its ports by label."""

    def __init__(self, role: str, index: int, host: str, ports: "dict[str, list[int]]") -> None:
        self.role = role
        self.index = index
        self.host = host
        self.ports = ports

    def address(self, label: str = "http") -> str:
        """`host:port` of the first port with this label."""
        if not self.ports.get(label):
            known = ", ".join(sorted(self.ports)) or "none"
            raise KeyError(
                "task {}/{} has no port {!r}; it has: {}".format(self.role, self.index, label, known)
            )
        return "{}:{}".format(self.host, self.ports[label][0])

    def __repr__(self) -> str:
        return "Peer({}/{} at {}, ports {})".format(self.role, self.index, self.host, self.ports)


class Place:
    """What the environment says about the running task; everything is empty or 0 outside a job."""

    def __init__(self, environ: "dict[str, str]") -> None:
        self._environ = environ
        job = environ.get("PAI_JOB_NAME", "")
        self.user, self.job = job.split("~", 1) if "~" in job else (environ.get("PAI_USER_NAME", ""), job)
        self.role = environ.get("PAI_CURRENT_TASK_ROLE_NAME", "")
        self.index = _number(
            environ.get("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX") or environ.get("PAI_TASK_INDEX")
        )
        self.job_attempt = _number(environ.get("FC_FRAMEWORK_ATTEMPT_ID"))
        self.task_attempt = _number(environ.get("FC_TASK_ATTEMPT_ID"))
        self.workspace = environ.get("PAI_SDK_JOB_WORKSPACE", "")
        self.output_dir = environ.get("PAI_SDK_JOB_OUTPUT_DIR", "")
        self.task_dir = environ.get("PAI_SDK_TASK_DIR", "")

    @property
    def in_job(self) -> bool:
        return bool(self._environ.get("PAI_CONTAINER_ID") or self.job)

    @property
    def kind(self) -> str:
        """`local`, `interactive` (a job that waits for a person, such as Jupyter) or `batch`."""
        if not self.in_job:
            return LOCAL
        return INTERACTIVE if self._environ.get("PAI_SDK_JOB_KIND") == INTERACTIVE else BATCH

    def peers(self, role: "str | None" = None) -> "list[Peer]":
        """All tasks of the job, or of one role, in the order of the job spec."""
        found = []
        for item in self._environ.get("PAI_TASK_ROLE_INSTANCES", "").split(","):
            name, _, index = item.partition(":")
            if name and (role is None or name == normalise(role)):
                found.append(self._peer(name, int(index)))
        return found

    def _peer(self, role: str, index: int) -> Peer:
        prefix = "PAI_PORT_LIST_{}_{}_".format(role, index)
        ports = {}
        for key, value in self._environ.items():
            if key.startswith(prefix):
                ports[key[len(prefix) :]] = [int(port) for port in value.split(",") if port]
        host = self._environ.get("PAI_HOST_IP_{}_{}".format(role, index), "")
        return Peer(role, index, host, ports)

    def __repr__(self) -> str:
        if not self.in_job:
            import socket

            return "Place(local, {})".format(socket.gethostname())
        return "Place({}, {}~{}, {}/{})".format(self.kind, self.user, self.job, self.role, self.index)


def current() -> Place:
    return Place(dict(os.environ))


def normalise(role: str) -> str:
    """The role's name as the variables spell it: lower case, nothing but letters and digits."""
    return "".join(letter for letter in role.lower() if letter.isdigit() or "a" <= letter <= "z")


def _number(text: "str | None") -> int:
    return int(text) if text and text.isdigit() else 0
