"""What the scheduler remembers of each job and task that is not over."""

from __future__ import annotations

from hashlib import md5

from .model import PRIORITIES, JobInfo, Placement, Request, RoleInfo, TaskRef
from .transitions import COMPLETED, Stateful

Vector = tuple[int, int, int, int]
CPU, MEMORY, GPU, PORTS = range(4)
COUNTED = (CPU, MEMORY, GPU)
NOTHING: Vector = (0, 0, 0, 0)

QueueKey = tuple[int, int, int, int]
# Virtual cluster and parts; the same with the user and, where tasks start singly, the job.
GroupKey = tuple[str, tuple["Part", ...]]
LaneKey = tuple[GroupKey, str, str]
# A part of what is asked for: index of the role, needs of one task, number of such tasks.
Part = tuple[int, Vector, int]


def vector_of(request: Request) -> Vector:
    """What one task needs, as numbers to reckon with."""
    return request.cpu, request.memory_mb, request.gpu, sum(request.all_ports().values())


def plus(a: Vector, b: Vector, times: int = 1) -> Vector:
    """a + times * b."""
    return a[0] + times * b[0], a[1] + times * b[1], a[2] + times * b[2], a[3] + times * b[3]


def no_less(a: Vector, b: Vector) -> bool:
    """Whether a is at least b in everything."""
    return a[0] >= b[0] and a[1] >= b[1] and a[2] >= b[2] and a[3] >= b[3]


def uid_of(task: TaskRef) -> str:
    """The name that plays the part of a pod UID; the same for the same task attempt, whoever asks."""
    text = f"{task.job_id}/{task.attempt}/{task.role}/{task.index}/{task.task_attempt}"
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


class Task(Stateful):
    """A task of the job's newest attempt, in its own newest attempt."""

    __slots__ = (
        "code",
        "counted",
        "index",
        "job",
        "kill_code",
        "live",
        "needs",
        "placement",
        "quick_ends",
        "retries",
        "role",
        "role_index",
        "started_at",
        "task_attempt",
        "uid",
    )

    def __init__(self, job: Job, role_index: int, index: int) -> None:
        super().__init__()
        self.job = job
        self.role_index = role_index
        self.role: RoleInfo = job.info.roles[role_index]
        self.index = index
        self.needs = job.needs[role_index]
        self.task_attempt = 0
        self.code: int | None = None
        self.kill_code: int | None = None
        self.live = False
        self.placement: Placement | None = None
        self.uid = ""
        self.started_at: float | None = None
        self.retries = self.counted = self.quick_ends = 0

    @property
    def ref(self) -> TaskRef:
        return TaskRef(self.job.info.id, self.job.attempt, self.role.name, self.index, self.task_attempt)

    def described(self) -> str:
        return f"task {self.job.info.name}/{self.role.name}/{self.index}"


class Job(Stateful):
    """A job that is not over; `tasks` are those of the attempt under way or, without gang, about to start."""

    __slots__ = (
        "asks",
        "attempt",
        "blocked_since",
        "code",
        "counted",
        "gave_way_to",
        "info",
        "live",
        "needs",
        "open",
        "outcomes",
        "overtaken",
        "quick_ends",
        "rank",
        "retries",
        "retry_at",
        "started_at",
        "stop_requested",
        "tasks",
        "trigger",
    )

    def __init__(self, info: JobInfo) -> None:
        super().__init__()
        self.info = info
        self.rank = PRIORITIES.index(info.priority)
        self.needs: list[Vector] = [vector_of(role.request) for role in info.roles]
        self.attempt = 0
        self.code: int | None = None
        self.trigger: TaskRef | None = None
        self.gave_way_to: str | None = None
        self.stop_requested = False
        self.retries = self.counted = self.quick_ends = 0
        self.retry_at: float | None = None
        self.started_at: float | None = None
        self.overtaken = 0
        self.blocked_since: float | None = None
        self.tasks: dict[tuple[str, int], Task] = {}
        self.asks: dict[tuple[str, int], Ask] = {}
        self.live = 0
        self.open = 0
        self.outcomes: list[list[int]] = []

    @property
    def oppo(self) -> bool:
        return self.info.priority == "oppo"

    def described(self) -> str:
        return f"job {self.info.name}"

    def fresh_tasks(self) -> None:
        """Lay out the tasks of a new attempt."""
        self.tasks = {
            (role.name, index): Task(self, position, index)
            for position, role in enumerate(self.info.roles)
            for index in range(role.instances)
        }
        self.open = len(self.tasks)
        self.outcomes = [[0, 0] for _ in self.info.roles]
        self.live = 0

    def waiting_tasks(self) -> list[Task]:
        """Tasks that neither run nor are over."""
        return [task for task in self.tasks.values() if not task.live and task.sub_state != COMPLETED]


class Ask:
    """Something that waits to be placed as a whole: the gang of a job, or one task of a job without gang."""

    __slots__ = ("group", "job", "key", "lane", "parts", "task", "total", "waiting")

    def __init__(self, job: Job, task: Task | None = None) -> None:
        self.job = job
        self.task = task
        self.waiting = False
        number = job.info.number
        if task is None:
            self.key: QueueKey = (job.rank, number, 0, 0)
            parts = [(i, job.needs[i], role.instances) for i, role in enumerate(job.info.roles)]
            # The hardest to place goes first.
            parts.sort(key=lambda part: (-part[1][GPU], -part[1][CPU], -part[1][MEMORY]))
            self.parts: tuple[Part, ...] = tuple(parts)
        else:
            self.key = (job.rank, number, task.role_index, task.index)
            self.parts = ((task.role_index, task.needs, 1),)
        total = NOTHING
        for _, needs, count in self.parts:
            total = plus(total, needs, count)
        self.total = total
        # Alike in what they need: if one of a group does not fit, none does. Of one user as well: a lane.
        self.group: GroupKey = (job.info.vc, self.parts)
        self.lane: LaneKey = (self.group, job.info.user, "" if task is None else job.info.id)
