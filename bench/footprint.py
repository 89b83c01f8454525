"""What the server costs: memory and CPU at rest, and memory per task of a 500-task job."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from measure import report

from support.servers import ServerProcess

TASKS = 500


def pss(pid: int) -> float:
    """Proportional set size in MB: shared pages are counted by their share."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


def spec(tasks: int) -> dict[str, object]:
    return {
        "protocolVersion": 2,
        "name": "wide",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "none"}],
        "taskRoles": {
            "worker": {
                "instances": tasks,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 0, "memoryMB": 16, "gpu": 0},
                "commands": ["exec sleep 600"],
            }
        },
        "extras": {"openpaisdk": {"image": "default"}},
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="opai-bench-") as folder:
        server = ServerProcess(Path(folder)).start()
        try:
            process = psutil.Process(server.process.pid)  # type: ignore[union-attr]
            cluster = server.cluster()
            cluster.jobs()
            bare = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            before, at = sum(process.cpu_times()[:2]), time.monotonic()
            time.sleep(10)
            used = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - at)
            rest, reference = pss(process.pid), pss(bare.pid)
            bare.kill()
            bare.wait()
            report(
                "server at rest", f"{rest:.0f} MB PSS, {rest / reference:.1f}x bare", "<= 60 MB", rest <= 60
            )
            report("CPU at rest", f"{used:.2%} of a core", "none", used < 0.001)

            began = time.monotonic()
            cluster.submit(spec(TASKS))
            cluster.wait("wide", until="running", timeout=120)
            running = 0
            while running < TASKS:
                detail = cluster.job("wide")
                assert detail["jobStatus"]["state"] == "RUNNING", detail["jobStatus"]
                tasks = detail["taskRoles"]["worker"]["taskStatuses"]
                running = sum(task["taskState"] == "RUNNING" for task in tasks)
            spent = time.monotonic() - began
            ours = pss(process.pid) - rest
            # Beside each task we keep a small shell, a child of the server while that lives.
            wrappers = [child for child in process.children(recursive=True) if child.name() != "sleep"]
            assert len(wrappers) >= TASKS, f"{len(wrappers)} wrappers of {TASKS} tasks"
            ours += sum(pss(child.pid) for child in wrappers)
            report(
                f"{TASKS} tasks running", f"{ours / TASKS:.2f} MB of ours a task", "< 2 MB", ours / TASKS < 2
            )
            print(f"{TASKS} tasks started in {spent:.1f} s")
            cluster.stop("wide")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
