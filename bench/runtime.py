"""The runtime adds at most 60 ms to a task that uses it, and nothing to one that does not."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import interleaved, report

from openpaisdk import Cluster, Job
from support.servers import ServerProcess

PLAIN = "pass"
USING = (
    "from openpai.runtime import Runtime; app = Runtime.from_env(); app.on('main')(lambda: None); app.run()"
)


def task(cluster: Cluster, program: str, *, runtime: bool = True, **extras: object) -> Callable[[], object]:
    """A job of one task, from submission to its end."""
    command = f"exec {shlex.quote(sys.executable)} -c {shlex.quote(program)}"

    def run() -> object:
        job = Job.from_command(command, source=()).use_runtime(runtime)
        job.spec["extras"]["openpaisdk"].update(extras)
        return job.submit(cluster).result(30)

    return run


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="opai-bench-") as folder:
        server = ServerProcess(Path(folder), "--launcher", "process").start()
        try:
            cluster = server.cluster()
            times = interleaved(
                {
                    "without": task(cluster, PLAIN, runtime=False),
                    "there": task(cluster, PLAIN),
                    "used": task(cluster, USING),
                    "saving": task(cluster, "open('a.pt', 'w').write('x')", save=["*.pt"]),
                },
                rounds=25,
            )
        finally:
            server.stop()
    bare = times["without"]
    for title, name, most in (
        ("task that uses the runtime", "used", 60.0),
        ("task that does not use it", "there", 5.0),
        ("task with a saved file", "saving", 60.0),
    ):
        more = times[name] - bare
        value = f"+{more:.1f} ms, {times[name] / bare:.2f}x of {bare:.0f} ms"
        report(title, value, f"<= {most:g} ms", more <= most)


if __name__ == "__main__":
    main()
