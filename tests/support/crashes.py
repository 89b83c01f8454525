"""Kills the server at random moments under load: nothing may be lost, started twice or cut off."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from openpaisdk.core import Cluster
from openpaisdk.errors import OpenPAIError, UnavailableError
from openpaisdk.rest.following import LogLine
from support.servers import ServerProcess

LINES = 20
TERMINAL = {"SUCCEEDED", "FAILED", "STOPPED"}


def spec(name: str, ledger: Path, rng: random.Random) -> dict[str, object]:
    """A job whose every attempt signs the ledger once, prints numbered lines and takes a moment."""
    command = (
        f"echo start-$FC_FRAMEWORK_ATTEMPT_ID-$FC_TASK_ATTEMPT_ID >> {ledger}/{name}\n"
        f"for i in $(seq 1 {LINES}); do echo line $i; done\n"
        f"sleep {rng.choice([0, 0.02, 0.1, 0.3])}\n"
        f"echo last line\n"
        f"echo end-$FC_FRAMEWORK_ATTEMPT_ID-$FC_TASK_ATTEMPT_ID >> {ledger}/{name}\n"
    )
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "none"}],
        "taskRoles": {
            "worker": {
                "instances": 1,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
                "commands": [command],
            }
        },
        "extras": {"openpaisdk": {"image": "default"}},
    }


class CrashRun:
    """One run: jobs submitted while the server is killed and started again."""

    def __init__(self, folder: Path, *, jobs: int, kills: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ledger = folder / "ledger"
        self.ledger.mkdir(parents=True)
        self.server = ServerProcess(folder / "server")
        self.jobs = [f"crash-{number}" for number in range(jobs)]
        self.kills = kills
        self.killed = 0

    def run(self, patience: float = 300.0) -> dict[str, float]:
        self.server.start()
        began = time.monotonic()
        try:
            self._submit_all()
            self._wait_for_all(began + patience)
            self._check()
        finally:
            self.server.stop()
        return {"jobs": len(self.jobs), "kills": self.killed, "seconds": round(time.monotonic() - began, 1)}

    def _crash(self) -> None:
        self.server.kill()
        self.server.start()
        self.killed += 1

    def _submit_all(self) -> None:
        """Crashes fall between and into submissions; each is repeated with its key until it is accepted."""
        crash_after = set(self.rng.sample(range(len(self.jobs)), k=min(len(self.jobs), self.kills // 2)))
        for number, name in enumerate(self.jobs):
            text = spec(name, self.ledger, self.rng)
            while True:
                try:
                    self.cluster().submit(text, key=name)
                    break
                except (UnavailableError, ConnectionError):
                    self.server.start()
            if number in crash_after:
                self._crash()

    def _wait_for_all(self, deadline: float) -> None:
        """Further crashes come at random moments until all have been spent and every job has ended."""
        while time.monotonic() < deadline:
            if self.killed < self.kills:
                # A crash comes at a moment nobody chose: this pause is the randomness, not a wait.
                time.sleep(self.rng.uniform(0.01, 0.4))
                self._crash()
            counts = self._unfinished()
            if not counts and self.killed >= self.kills:
                return
            if counts and self.killed >= self.kills:
                with suppress(TimeoutError):
                    self.cluster().wait(counts[0], timeout=5)
        raise AssertionError(
            f"jobs that did not end in time: {self._unfinished()[:10]}\n{self.server.log()[-3000:]}"
        )

    def _unfinished(self) -> list[str]:
        rows = self.cluster().jobs(limit=5000)
        assert len(rows) == len(self.jobs), f"{len(self.jobs)} jobs were accepted, {len(rows)} are known"
        return [row["name"] for row in rows if row["state"] not in TERMINAL]

    def _check(self) -> None:
        cluster = self.cluster()
        wrong = []
        for name in self.jobs:
            signed = (self.ledger / name).read_text().split()
            starts = [line for line in signed if line.startswith("start")]
            state = cluster.job(name)["jobStatus"]["state"]
            if state != "SUCCEEDED":
                wrong.append(f"{name} ended {state}")
            if len(starts) != len(set(starts)):
                wrong.append(f"{name} started an attempt twice: {signed}")
            log = read_stdout(cluster, name)
            if log != "".join(f"line {i}\n" for i in range(1, LINES + 1)) + "last line\n":
                wrong.append(f"{name} has a log of {len(log)} characters: {log[-60:]!r}")
        assert not wrong, "\n".join(wrong[:20])

    def cluster(self) -> Cluster:
        return self.server.cluster()


def read_stdout(cluster: Cluster, name: str) -> str:
    """The whole stdout of the last attempt of the job's only task."""
    return "".join(
        record.text
        for record in cluster.follow(name, lines=False)
        if isinstance(record, LogLine) and record.stream == "stdout"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    for number in range(args.rounds):
        seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed + number
        print(f"round {number + 1}: seed {seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="opai-soak-") as folder:
            try:
                done = CrashRun(Path(folder), jobs=args.jobs, kills=args.kills, seed=seed).run(patience=3600)
            except (AssertionError, OpenPAIError) as error:
                print(f"failed with seed {seed}:\n{error}", file=sys.stderr)
                return 1
        print(
            "  {jobs} jobs, {kills} kills, {seconds} s: all there, none started twice, logs whole".format(
                **done
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
