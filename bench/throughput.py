"""Trivial jobs by the Python API: 50 done in 1.5 s, 1,000 in 25 s; a burst of 4,000 with none lost."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import threading
import time
from collections import deque

from measure import empty_home, report, seconds


def floor(count: int) -> None:
    """The reference: the same commands, two at a time, with no queue, no log and no memory."""
    running: deque[subprocess.Popen[bytes]] = deque()
    for _ in range(count):
        if len(running) == 2:
            running.popleft().wait()
        running.append(subprocess.Popen(["bash", "-c", "true"]))
    for process in running:
        process.wait()


def submit_and_finish(count: int) -> None:
    from openpaisdk import Job

    jobs = [Job.from_command("true").submit() for _ in range(count)]
    for job in jobs:
        assert job.result(timeout=120)["state"] == "SUCCEEDED"


def burst(count: int, threads: int = 8) -> tuple[float, int]:
    """Submits from several threads at once; returns the seconds and how many the server knows."""
    from openpaisdk import Cluster, Job

    refused: list[BaseException] = []

    def part(number: int) -> None:
        try:
            for _ in range(count // threads):
                Job.from_command("true", name=None).submit()
        except Exception as error:
            refused.append(error)

    workers = [threading.Thread(target=part, args=(number,)) for number in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    spent = time.perf_counter() - began
    assert not refused, refused[:3]
    return spent, sum(1 for _ in Cluster.open().iter_jobs())


def submit_times(count: int, *, at_rest: bool) -> list[float]:
    """Milliseconds of each submission on one connection: each job done before the next, or all at a run."""
    from openpaisdk import Cluster, Job

    cluster = Cluster.open()
    taken = []
    for job in [Job.from_command("true") for _ in range(count)]:
        taken.append(seconds(lambda job=job: cluster.submit(job.spec)) * 1000)
        if at_rest:
            cluster.wait(job.name)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--burst", type=int, default=4000)
    args = parser.parse_args()
    with empty_home():
        submit_and_finish(2)
        for count, promise in ((50, 1.5), (1000, 25.0)):
            reference = seconds(lambda count=count: floor(count))
            spent = seconds(lambda count=count: submit_and_finish(count))
            report(
                f"{count} jobs submitted and done",
                f"{spent:.2f} s, {spent / reference:.1f}x floor",
                f"<= {promise} s",
                spent <= promise,
            )
        for title, at_rest in (("one submission", True), ("one submission while others run", False)):
            times = submit_times(200, at_rest=at_rest)
            median = statistics.median(times)
            value = f"p50 {median:.1f} ms, p90 {sorted(times)[180]:.1f} ms"
            report(title, value, "<= 6 ms p50" if at_rest else "-", median <= 6 or not at_rest)
        spent, known = burst(args.burst)
        known -= 1452
        report(
            f"{args.burst} submissions in a burst",
            f"{spent:.1f} s, {known} known",
            "none lost",
            known == args.burst,
        )


if __name__ == "__main__":
    main()
