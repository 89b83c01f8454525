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
                "resourcePerInstance": {"cpu": 0, "memoryMB": 1, "gpu": 0},
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
            bare = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            before, at = sum(process.cpu_times()[:2]), time.monotonic()
            time.sleep(10)
            used = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - at)
            rest, reference = pss(process.pid), pss(bare.pid)
            bare.communicate()
            report(
                "server at rest", f"{rest:.0f} MB PSS, {rest / reference:.1f}x bare", "<= 60 MB", rest <= 60
            )
            report("CPU at rest", f"{used:.2%} of a core", "none", used < 0.001)

            began = time.monotonic()
            cluster.submit(spec(TASKS))
            cluster.wait("wide", until="running", timeout=120)
            while True:
                states = [
                    task["taskState"] for task in cluster.job("wide")["taskRoles"]["worker"]["taskStatuses"]
                ]
                if states.count("RUNNING") == TASKS:
                    break
            spent = time.monotonic() - began
            ours = pss(process.pid) - rest
            for child in psutil.process_iter(["cmdline"]):
                line = child.info["cmdline"] or []
                if folder in " ".join(line) and child.pid != process.pid and "sleep" not in line[0]:
                    ours += pss(child.pid)
            report(
                f"{TASKS} tasks running", f"{ours / TASKS:.2f} MB of ours a task", "< 2 MB", ours / TASKS < 2
            )
            print(f"{TASKS} tasks started in {spent:.1f} s")
            cluster.stop("wide")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
