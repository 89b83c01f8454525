"""200 followers of one log at once: a line reaches the median follower within 100 ms."""

from __future__ import annotations

import http.client
import statistics
import threading
import time
from urllib.parse import urlsplit

from measure import empty_home, report

FOLLOWERS, LINES = 200, 20

# Each line carries the moment it was written.
PROGRAM = f"""python3 -u -c "
import time
for i in range({LINES} + 15):
    time.sleep(0.2)
    print('at', repr(time.time()), flush=True)
" """


def follow(uri: str, token: str, job: str, lags: list[float], ready: threading.Barrier) -> None:
    where = urlsplit(uri)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
    connection.request("GET", f"/api/v2/jobs/{job}/follow", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    started = None
    while True:
        line = answer.readline()
        now = time.time()
        if not line or b"event: end" in line:
            break
        if started is None and b"at " in line:
            # All followers are connected before the first line counts.
            ready.wait(60)
            started = time.time()
            continue
        if b"at " in line:
            for part in line.decode().split("at ")[1:]:
                written = float(part.split("\\n")[0].strip('"} \n'))
                if written > (started or 0):
                    lags.append(now - written)
    connection.close()


def main() -> None:
    from openpaisdk import Cluster, Job

    with empty_home():
        job = Job.from_command(PROGRAM).submit()
        cluster = Cluster.open()
        job.wait_running() if hasattr(job, "wait_running") else None
        lags: list[float] = []
        ready = threading.Barrier(FOLLOWERS)
        name = f"{cluster.user}~{job.name}"
        threads = [
            threading.Thread(
                target=follow, args=(cluster.config.pai_uri, cluster.config.token, name, lags, ready)
            )
            for _ in range(FOLLOWERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        median = statistics.median(lags) * 1000
        worst = sorted(lags)[int(len(lags) * 0.99)] * 1000
        report(
            f"{FOLLOWERS} followers, {len(lags)} lines",
            f"median {median:.0f} ms, p99 {worst:.0f} ms",
            "< 100 ms median",
            median < 100,
        )


if __name__ == "__main__":
    main()
