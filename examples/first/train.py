"""Trains a small neural network to tell two interleaved spirals apart, with nothing but Python itself."""

import argparse
import json
import math
import os
import random
from pathlib import Path


def spirals(points: int, rng: random.Random) -> list[tuple[float, float, int]]:
    data = []
    for i in range(points):
        angle = 0.5 + 3.0 * math.pi * i / points
        for label, turn in ((0, 0.0), (1, math.pi)):
            x = angle * math.cos(angle + turn) / 10 + rng.gauss(0, 0.02)
            y = angle * math.sin(angle + turn) / 10 + rng.gauss(0, 0.02)
            data.append((x, y, label))
    return data


class Network:
    """Two inputs, one hidden layer of tanh, one sigmoid output."""

    def __init__(self, hidden: int, rng: random.Random) -> None:
        self.first = [[rng.uniform(-4, 4), rng.uniform(-4, 4), rng.uniform(-2, 2)] for _ in range(hidden)]
        self.second = [rng.uniform(-0.5, 0.5) for _ in range(hidden)] + [0.0]

    def forward(self, x: float, y: float) -> tuple[list[float], float]:
        hidden = [math.tanh(a * x + b * y + c) for a, b, c in self.first]
        score = sum(w * h for w, h in zip(self.second, hidden)) + self.second[-1]
        return hidden, 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def learn(self, x: float, y: float, label: int, rate: float) -> float:
        hidden, guess = self.forward(x, y)
        error = guess - label
        for i, h in enumerate(hidden):
            slope = error * self.second[i] * (1 - h * h)
            weights = self.first[i]
            weights[0] -= rate * slope * x
            weights[1] -= rate * slope * y
            weights[2] -= rate * slope
            self.second[i] -= rate * error * h
        self.second[-1] -= rate * error
        return -math.log(max(1e-12, guess if label else 1 - guess))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()

    rng = random.Random(7)
    data = spirals(150, rng)
    network = Network(args.hidden, rng)
    for epoch in range(1, args.epochs + 1):
        loss = 0.0
        for _ in range(12):
            rng.shuffle(data)
            loss = sum(network.learn(x, y, label, args.rate) for x, y, label in data) / len(data)
        right = sum((network.forward(x, y)[1] > 0.5) == bool(label) for x, y, label in data)
        print(f"epoch {epoch}  loss {loss:.3f}  accuracy {right / len(data):.1%}", flush=True)

    # Inside a job this is the folder whose files come back with `opai output download`.
    target = Path(os.environ.get("PAI_SDK_JOB_OUTPUT_DIR", ".")) / "model.json"
    target.write_text(json.dumps({"first": network.first, "second": network.second}))
    print(f"saved {target.name}", flush=True)


if __name__ == "__main__":
    main()
