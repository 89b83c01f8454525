"""What one decision costs with many jobs waiting, beside a plain heap that only moves jobs in and out.

python bench/scheduler.py [--waiting 5000] [--events 5000]
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections.abc import Callable, Iterator

from openpaisdk.scheduler import (
    Action,
    JobInfo,
    JobSubmitted,
    LaunchTasks,
    Node,
    Quota,
    Request,
    RoleInfo,
    Scheduler,
    TaskEnded,
    TaskRef,
    TaskStarted,
    VirtualCluster,
)

Shape = Callable[[int], Request]
NODES = [Node(f"n{n}", 64, 256_000, tuple(range(8))) for n in range(4)]


def one_shape(_: int) -> Request:
    return Request(1, 1024, 1)


def few_shapes(number: int) -> Request:
    return Request(1 + number % 4, 1024, number % 3)


def all_different(number: int) -> Request:
    return Request(1 + number * 7919 % 61, 1000 + number, number * 31 % 9)


def jobs(shape: Shape, users: int, clusters: list[str]) -> Iterator[JobInfo]:
    for number in range(10_000_000):
        user = f"user{number % users}"
        yield JobInfo(
            id=str(number),
            name=f"{user}~job{number}",
            user=user,
            number=number,
            submitted_at=0.0,
            roles=(RoleInfo("worker", 1, shape(number), 1, 1),),
            vc=clusters[number % len(clusters)],
        )


def launched(actions: list[Action]) -> list[TaskRef]:
    return [start.task for action in actions if isinstance(action, LaunchTasks) for start in action.tasks]


def measure(
    title: str, shape: Shape, waiting: int, events: int, *, users: int, clusters: int, quota: bool
) -> None:
    names = [f"vc{n}" for n in range(clusters)]
    scheduler = Scheduler(
        NODES,
        [VirtualCluster(name, share=1 / clusters) for name in names],
        quotas={"*": Quota(jobs=20)} if quota else {},
    )
    source = jobs(shape, users, names)
    running: list[TaskRef] = []
    for _ in range(waiting + 100):
        running += launched(scheduler.handle(JobSubmitted(next(source)), 0.0))
    spent = {"submit": 0.0, "start": 0.0, "end": 0.0}
    worst = 0.0
    clock = time.perf_counter
    for number in range(events):
        now = float(number)
        task = running.pop(0)
        begin = clock()
        scheduler.handle(TaskStarted(task, now), now)
        started = clock()
        running += launched(scheduler.handle(TaskEnded(task, 0, now), now))
        ended = clock()
        running += launched(scheduler.handle(JobSubmitted(next(source)), now))
        submitted = clock()
        spent["start"] += started - begin
        spent["end"] += ended - started
        spent["submit"] += submitted - ended
        worst = max(worst, ended - started, submitted - ended)
    plain = plain_heap(waiting, events)
    each = {name: seconds / events * 1e6 for name, seconds in spent.items()}
    total = sum(each.values())
    print(
        f"{title:34} {each['submit']:7.0f} {each['start']:7.0f} {each['end']:7.0f} {worst * 1e3:8.1f}"
        f" {1e6 / total:10.0f} {total / plain:8.0f}x"
    )


def plain_heap(waiting: int, events: int) -> float:
    """Microseconds for one job into and one out of a heap."""
    heap = [(number, str(number)) for number in range(waiting)]
    begin = time.perf_counter()
    for number in range(waiting, waiting + events):
        heapq.heappop(heap)
        heapq.heappush(heap, (number, str(number)))
    return (time.perf_counter() - begin) / events * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--waiting", type=int, default=5000)
    parser.add_argument("--events", type=int, default=3000)
    args = parser.parse_args()
    print(f"{args.waiting} jobs waiting on {len(NODES)} nodes; microseconds per event, whole jobs per second")
    print(
        f"{'':34} {'submit':>7} {'start':>7} {'end':>7} {'worst ms':>8} {'jobs/s':>10} {'to heap':>9}   left"
    )
    for title, shape, users, clusters, quota in (
        ("alike, 1 user", one_shape, 1, 1, False),
        ("alike, 100 users", one_shape, 100, 1, False),
        ("12 shapes, 50 users, 4 VCs", few_shapes, 50, 4, False),
        ("12 shapes, 50 users, quotas", few_shapes, 50, 1, True),
        ("all different, 50 users, 4 VCs", all_different, 50, 4, False),
    ):
        measure(title, shape, args.waiting, args.events, users=users, clusters=clusters, quota=quota)


if __name__ == "__main__":
    main()
