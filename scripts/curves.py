#!/usr/bin/python3
"""Draws what a training wrote with --metrics, and prints where it ended.

usage: curves.py NAME METRICS.jsonl FOLDER      writes FOLDER/NAME.svg
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "muster"  # the same figures give the same file
from matplotlib import pyplot  # noqa: E402


def main(name: str, metrics: str, folder: str) -> None:
    reports = [json.loads(line) for line in Path(metrics).read_text().splitlines()]
    losses = [(report["step"], report["train/loss"]) for report in reports if "train/loss" in report]
    tests = [report for report in reports if "test/loss" in report]
    axes = pyplot.figure(figsize=(6.4, 3.6)).add_subplot(title=f"{name}, 2 ranks", xlabel="step", ylabel="loss (nats)")
    axes.plot(*zip(*losses), linewidth=1, label="training")
    if tests:
        axes.plot([test["step"] for test in tests], [test["test/loss"] for test in tests], "o-", label="test")
    for test in tests:
        if "test/accuracy" in test:
            axes.annotate(f"{100 * test['test/accuracy']:.2f} %", (test["step"], test["test/loss"]),
                          textcoords="offset points", xytext=(-8, 10), ha="right")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    axes.figure.savefig(Path(folder) / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    last = tests[-1] if tests else reports[-1]
    print(f"curves: {name}: " + ", ".join(f"{key} {value:.4g}" for key, value in last.items()
                                          if key in ("step", "test/loss", "test/accuracy", "train/loss")))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
