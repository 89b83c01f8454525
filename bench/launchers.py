"""The process launcher: at most 3 ms of the server per task, less than 2 MB of ours per running one."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import psutil
from measure import report

from openpaisdk.launchers import Launcher, TaskSpec, default_launcher

ENVIRONMENT = {f"PAI_VARIABLE_{number}": "a value of usual length" for number in range(60)}


def gang(root: Path, count: int, script: str) -> list[TaskSpec]:
    return [
        TaskSpec(
            key=f"task-{n}", folder=str(root / f"task-{n}"), script=script, env=ENVIRONMENT, memory_mb=256
        )
        for n in range(count)
    ]


async def timed_run(launcher: Launcher, specs: list[TaskSpec]) -> tuple[float, float]:
    """Seconds of this process for all tasks from launch to end, and seconds until all have ended."""
    ended, done = 0, asyncio.Event()

    def on_exit(handle: str) -> None:
        nonlocal ended
        ended += 1
        if ended == len(specs):
            done.set()

    launcher.subscribe(on_exit, lambda *event: None)
    began, worked = time.perf_counter(), time.process_time()
    handles = [handle for spec in specs for handle in await launcher.launch([spec])]
    await done.wait()
    spent = time.process_time() - worked, time.perf_counter() - began
    await launcher.forget(handles)
    return spent


async def longest_block(work: asyncio.Future[list[str]]) -> float:
    """The longest time the event loop was not free while `work` ran."""
    worst, before = 0.0, time.perf_counter()
    while not work.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        worst, before = max(worst, now - before), now
    return worst


def memory_per_task(count: int) -> dict[str, int]:
    """kB of proportional set size per task and program, the user's own `sleep` included."""
    total: dict[str, float] = {}
    for process in psutil.Process().children(recursive=True):
        total[process.name()] = total.get(process.name(), 0.0) + process.memory_full_info().pss / 1024
    return {name: round(size / count) for name, size in total.items()}


async def trivial_tasks(launcher: Launcher, root: Path, count: int = 200) -> None:
    worked, finished = await timed_run(launcher, gang(root, count, "echo hi"))
    each = worked / count * 1000
    report("CPU of the server per task", f"{each:.2f} ms", "<= 3 ms", each <= 3)
    report(f"{count} trivial tasks, one after the other", f"{finished:.2f} s", "<= 5 s", finished <= 5)


async def many_tasks(launcher: Launcher, root: Path, count: int = 500) -> None:
    start = asyncio.ensure_future(launcher.launch(gang(root, count, "sleep 600")))
    try:
        blocked = await longest_block(start) * 1000
        await asyncio.sleep(1)
        memory = memory_per_task(count)
    finally:
        began = time.perf_counter()
        await launcher.kill(await start, grace=10)
        killed = time.perf_counter() - began
        await launcher.forget(start.result())
    ours = sum(size for name, size in memory.items() if name != "sleep")
    report(f"event loop held by {count} launches", f"{blocked:.0f} ms", "<= 50 ms", blocked <= 50)
    report(f"memory of ours per task, {count} running", f"{ours} kB", "< 2048 kB", ours < 2048)
    report(f"kill of {count} tasks", f"{killed:.2f} s", "<= 5 s", killed <= 5)


async def main() -> None:
    launcher = default_launcher("process")
    with tempfile.TemporaryDirectory() as folder:
        try:
            await trivial_tasks(launcher, Path(folder, "trivial"))
            await many_tasks(launcher, Path(folder, "many"))
        finally:
            await launcher.close()


if __name__ == "__main__":
    asyncio.run(main())
