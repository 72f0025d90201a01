#!/usr/bin/python3
"""Draws what a training wrote with --metrics, and prints where it ended.

usage: curves.py NAME METRICS.jsonl FOLDER                writes FOLDER/NAME.svg
       curves.py NAME FOLDER LABEL=METRICS.jsonl...       several trainings in one picture, and how far apart they are
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


def together(name: str, folder: str, trainings: list[str]) -> None:
    axes = pyplot.figure(figsize=(6.4, 3.6)).add_subplot(title=name, xlabel="step", ylabel="loss (nats)")
    curves = []
    for number, training in enumerate(trainings):
        label, metrics = training.split("=", 1)
        reports = [json.loads(line) for line in Path(metrics).read_text().splitlines()]
        for key, style in (("train/loss", "-"), ("test/loss", "o")):
            points = [(report["step"], report[key]) for report in reports if key in report]
            # The first is wider, to be visible below others on the same points.
            axes.plot(*zip(*points), style, linewidth=4 if number == 0 else 1, markersize=9 if number == 0 else 4,
                      alpha=0.4 if number == 0 else 1, label=f"{label}, {key.split('/')[0]}")
            curves.append((label, key, dict(points)))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    axes.figure.savefig(Path(folder) / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    for label, key, points in curves:
        first = next(others for _, other_key, others in curves if other_key == key)
        apart = max(abs(points[step] - first[step]) for step in points)
        print(f"curves: {name}: {label}: {key} {list(points.values())[-1]:.6f}, "
              f"at most {apart:.1e} from {curves[0][0]}'s")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    if "=" in sys.argv[3]:
        together(sys.argv[1], sys.argv[2], sys.argv[3:])
    elif len(sys.argv) == 4:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
