"""Checkpoints: what one in ten steps of a training costs, of muster-train and of Python's torch.save."""

import json
import statistics
import tempfile
from pathlib import Path

import contest
import results
import tools

from benchmarks import training

TARGETS = ["//launcher:muster", "//trainer:muster-train"]

PEER = "torch.save"
MODEL, BATCH = "mlp-large", 64
STEPS = 10  # of which there is one checkpoint, or none
COST = results.Metric("steps' time with a checkpoint", "times that without")
GOAL = results.Goal(limit=1.05)


def cost(times: dict[int, float]) -> contest.Figures:
    """Ten steps behind a checkpoint against the ten after them, which have none: pairs from one run meet one machine.

    `times` are those of every tenth step. The first checkpoint does not count: its memory is new to the kernel.
    """
    last = max(times) - 2 * STEPS
    starts = range(4 * STEPS, last + 1, 2 * STEPS)
    with_one = statistics.mean(times[start + STEPS] - times[start] for start in starts)
    without = statistics.mean(times[start + 2 * STEPS] - times[start + STEPS] for start in starts)
    return {COST.name: with_one / without}


def muster_command(form: str, steps: int, folder: str) -> list[str]:
    return [tools.built("launcher/muster"), "run", "--standalone", "--nproc-per-node", str(training.RANKS),
            "--no-python", tools.built("trainer/muster-train"), "--model", MODEL, "--data", str(training.DATA),
            "--batch-size", str(BATCH), "--lr", "0.002", "--momentum", "0.9", "--epochs", "1000000",
            "--max-steps", str(steps), "--report-every", str(STEPS), "--no-eval",
            "--metrics", f"{folder}/metrics.jsonl", "--checkpoint-dir", f"{folder}/checkpoints",
            "--checkpoint-every", str(2 * STEPS), "--checkpoint-format", form, "--keep", "1"]


def run_muster(form: str, steps: int) -> contest.Figures:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # a disk's, where /tmp may be memory
        tools.run(muster_command(form, steps, folder), training.VARIABLES)
        lines = [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]
    return cost({line["step"]: line["time"] for line in lines if "train/loss" in line})


def run_python(steps: int) -> contest.Figures:
    script = Path(__file__).parents[1] / "training_ddp.py"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        done = tools.run([*tools.TORCHRUN, "--standalone", f"--nproc_per_node={training.RANKS}", str(script), MODEL,
                          str(BATCH), str(steps), str(STEPS), str(training.DATA), str(2 * STEPS),
                          f"{folder}/checkpoint.pt"], training.VARIABLES)
    said = json.loads(next(line for line in done.output.splitlines() if line.startswith('{"reports"')))
    return cost({step: time for step, time, _ in said["reports"]})


def measure(settings: tools.Settings) -> results.Benchmark:
    steps = (6 if settings.quick else 18) * STEPS
    benchmark = results.Benchmark(
        name="checkpoints",
        title="Checkpoints: what one in ten steps costs",
        how=f"{training.RANKS} ranks with a thread each train the MLP of 25 M, whose checkpoint with SGD's momentum is "
            f"200 MB, and write one every {2 * STEPS} steps: the ten steps behind it, in which muster-train copies and "
            "writes, against the next ten. Python saves as its users do, by torch.save on rank 0 between two steps, "
            "and syncs the file.")
    if not (tools.peer("torchrun") and training.DATA.exists()):
        benchmark.notes.append(f"checkpoints were not measured: torchrun (python3-torch) or {training.DATA} "
                               "(dataset-fashion-mnist) is not there")
        return benchmark
    contestants = [contest.Contestant("whole", lambda: run_muster("whole", steps)),
                   contest.Contestant("shards", lambda: run_muster("shards", steps)),
                   contest.Contestant(PEER, lambda: run_python(steps))]
    samples = contest.take_turns("checkpoints", contestants, settings.pairs)
    for form in ("whole", "shards"):
        benchmark.add(f"--checkpoint-format {form}", [COST], {results.OURS: samples[form], PEER: samples[PEER]},
                      {COST.name: (GOAL,)})
        benchmark.commands.append(" ".join(["OMP_NUM_THREADS=1", *muster_command(form, steps, "FOLDER")]))
    return benchmark
