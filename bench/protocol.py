"""Parse and validate the largest job a server takes: 100 kB with 200 task roles; promised are 50 ms."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import yaml

from openpaisdk.protocol import check, load

PROMISE_MS = 50.0
ROUNDS = 15

HEAD = """\
protocolVersion: 2
name: large
type: job
parameters: {lr: 1e-4, list: [a, b]}
prerequisites: [{type: dockerimage, name: img, uri: ubuntu}]
taskRoles:
"""
ROLE = """\
  worker{index}:
    instances: 2
    completion: {{minFailedInstances: 1, minSucceededInstances: -1}}
    dockerImage: img
    resourcePerInstance:
      cpu: 4
      memoryMB: 8192
      gpu: 1
      ports: {{tb: 2}}
    commands:
      - export A=1
      - |
        cd /workspace/code
        python train.py --lr <% $parameters.lr %> --data <% $parameters.list[1] %> --batch-size 128 --epochs 9
        python eval.py --checkpoint /mnt/models/resnet50/latest --dataset /mnt/data/imagenet --report out.json
"""


def best_ms(*actions: Callable[[], object]) -> list[float]:
    """The best time of each; in turns, so that a busy machine slows them all alike."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(ROUNDS):
        for action, taken in zip(actions, times):
            start = time.perf_counter()
            action()
            taken.append(time.perf_counter() - start)
    return [min(taken) * 1000 for taken in times]


def main() -> int:
    text = HEAD + "".join(ROLE.format(index=index) for index in range(200))
    broken = text.replace("cpu: 4", "cpus: 4")
    assert check(load(text)) == []
    assert len(check(load(broken))) == 400
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    ours, wrong, theirs = best_ms(
        lambda: check(load(text)),
        lambda: check(load(broken)),
        lambda: yaml.load(text, Loader=loader),
    )
    print(f"text                      {len(text) / 1000:7.1f} kB, 200 task roles")
    print(f"yaml.load (C loader)      {theirs:7.1f} ms")
    print(f"load + check              {ours:7.1f} ms  {ours / theirs:5.2f}x  (promised: {PROMISE_MS:.0f} ms)")
    print(f"load + check, 400 faults  {wrong:7.1f} ms  {wrong / theirs:5.2f}x")
    return 0 if ours <= PROMISE_MS else 1


if __name__ == "__main__":
    sys.exit(main())
