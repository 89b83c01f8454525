"""Learns to read handwritten digits with scikit-learn; tried again, it goes on from its last checkpoint."""

import argparse
import json
import pickle
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from openpai.runtime import Runtime

app = Runtime.from_env()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--fail-at", type=int, help="fail after this epoch, in the first attempt only")
    return parser.parse_args()


def restore() -> tuple[int, SGDClassifier]:
    """The epoch to go on with, and the model so far."""
    last = app.checkpoints.last()
    if last is None:
        return 1, SGDClassifier(loss="log_loss", random_state=0)
    epoch, model = pickle.loads(Path(last).read_bytes())  # noqa: S301 - written by `publish`
    print(f"going on from the checkpoint of epoch {epoch}", flush=True)
    return epoch + 1, model


def publish(epoch: int, model: SGDClassifier) -> None:
    Path("checkpoint.pkl").write_bytes(pickle.dumps((epoch, model)))
    app.checkpoints.publish("checkpoint.pkl")


@app.on("main")
def main(args: argparse.Namespace) -> float:
    data = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        data.data / 16.0, data.target, test_size=0.25, random_state=0
    )
    first, model = restore()
    accuracy = 0.0
    for epoch in range(first, args.epochs + 1):
        order = np.random.default_rng(epoch).permutation(len(train_x))
        model.partial_fit(train_x[order], train_y[order], classes=np.arange(10))
        accuracy = model.score(test_x, test_y)
        print(f"epoch {epoch}  accuracy {accuracy:.3f}", flush=True)
        publish(epoch, model)
        if epoch == args.fail_at and app.place.job_attempt == 0:
            raise RuntimeError(f"failing on purpose after epoch {epoch}")
    Path("models").mkdir(exist_ok=True)
    Path("models/digits.pkl").write_bytes(pickle.dumps(model))
    Path("models/score.json").write_text(json.dumps({"epochs": args.epochs, "accuracy": accuracy}))
    return accuracy


@app.on("exception")
def explain(error: BaseException) -> None:
    print(f"attempt {app.place.job_attempt} failed: {error}", flush=True)


if __name__ == "__main__":
    app.run(parse_args())
