"""Training: steps a second of muster-train and of the same training in Python's DistributedDataParallel."""

import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import contest
import results
import tools

TARGETS = ["//launcher:muster", "//trainer:muster-train", "//test/bench/trainer:image_loading"]

DATA = Path("/usr/share/datasets/fashion-mnist")
RANKS = 2
PEER = "Python DDP"
SAME, BEST = "same options", "best options"

STEPS = results.Metric("steps in a second", "steps/s", higher_is_better=True)
PHASES = [results.Metric(name, "ms/step") for name in ("data", "forward", "backward", "optimizer")]
IMAGES = results.Metric("images in a second", "million/s", higher_is_better=True)

# muster-train's options: the defaults, and the equivalents of Python's options.
OPTIONS = {
    BEST: ["--comm", "shm", "--optimizer", "one-pass"],
    SAME: ["--comm", "gloo", "--optimizer", "reference"],
}


@dataclass(frozen=True)
class Network:
    title: str
    model: str  # muster-train's name of it
    batch: int  # of all ranks together
    reports: int  # after the first one, which ends the warm-up
    steps: int  # from one report to the next
    goal: float  # how many times as fast the best options are to be

    @property
    def all_steps(self) -> int:
        return (self.reports + 1) * self.steps


NETWORKS = [
    Network("small MLP", "mlp", batch=128, reports=10, steps=200, goal=2.5),
    Network("convnet", "cnn", batch=128, reports=8, steps=50, goal=1.25),
    Network("MLP of 25 M", "mlp-large", batch=64, reports=6, steps=10, goal=1.5),
    Network("ResNet-18", "resnet18", batch=32, reports=4, steps=4, goal=1.0),
]
QUICK = [Network(network.title, network.model, network.batch, reports=1, steps=3, goal=network.goal)
         for network in NETWORKS]

VARIABLES = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def muster_command(network: Network, options: list[str], folder: str) -> list[str]:
    return [tools.built("launcher/muster"), "run", "--standalone", "--nproc-per-node", str(RANKS), "--no-python",
            tools.built("trainer/muster-train"), "--model", network.model, *options, "--data", str(DATA),
            "--batch-size", str(network.batch), "--lr", "0.002", "--momentum", "0.9", "--epochs", "1000000",
            "--max-steps", str(network.all_steps), "--report-every", str(network.steps), "--no-eval", "--profile",
            "--metrics", f"{folder}/metrics.jsonl", "--checkpoint", f"{folder}/model.pt"]


def python_command(network: Network) -> list[str]:
    script = Path(__file__).parents[1] / "training_ddp.py"
    return [*tools.TORCHRUN, "--standalone", "--nproc_per_node", str(RANKS), str(script), network.model,
            str(network.batch), str(network.all_steps), str(network.steps), str(DATA)]


def steps_per_second(network: Network, times: dict[int, float]) -> float:
    """Over the steps between the first report and the last; `times` are when which step was reported."""
    first, last = network.steps, network.all_steps
    return (last - first) / (times[last] - times[first])


def profiled(phase: str, output: str) -> float:
    """Of the table of --profile, which has the phase, its milliseconds in a step and its share in a line."""
    line = re.search(rf"^{phase} +([0-9.]+) +[0-9.]+ %", output, re.MULTILINE)
    if line is None:
        sys.exit(f"bench: muster-train's profile does not have the phase {phase}: {output[-2000:]}")
    return float(line.group(1))


def run_muster(network: Network, name: str, losses: dict[str, float]) -> contest.Figures:
    with tempfile.TemporaryDirectory() as folder:
        cost = tools.run(muster_command(network, OPTIONS[name], folder), VARIABLES)
        lines = [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]
    reports = [line for line in lines if "train/loss" in line]
    losses[name] = reports[-1]["train/loss"]
    figures = {STEPS.name: steps_per_second(network, {report["step"]: report["time"] for report in reports})}
    return figures | {phase.name: profiled(phase.name, cost.output) for phase in PHASES}


def run_python(network: Network, losses: dict[str, float]) -> contest.Figures:
    cost = tools.run(python_command(network), VARIABLES)
    said = json.loads(next(line for line in cost.output.splitlines() if line.startswith('{"reports"')))
    losses[PEER] = said["reports"][-1][2]
    figures = {STEPS.name: steps_per_second(network, {step: time for step, time, _ in said["reports"]})}
    return figures | {phase.name: said["phases"][phase.name] for phase in PHASES}


def image_loading() -> contest.Figures:
    """Google Benchmark's own figure."""
    cost = tools.run([tools.built("test/bench/trainer/image_loading"), "--benchmark_format=json"], VARIABLES)
    report = json.loads(cost.output[cost.output.index("{"):])
    return {IMAGES.name: report["benchmarks"][0]["items_per_second"] / 1e6}


def measure(settings: tools.Settings) -> results.Benchmark:
    networks = QUICK if settings.quick else NETWORKS
    benchmark = results.Benchmark(
        name="training",
        title="Training: muster-train and Python DDP on the same LibTorch",
        how=f"{RANKS} ranks with a thread each train on Fashion-MNIST over loopback or shared memory: muster-train "
            "under muster, and scripts/bench/training_ddp.py, which holds the same network, samples, batches and "
            "SGD with momentum, under torchrun. Steps a second are counted from the end of the warm-up to the last "
            "step: no start, no test, no checkpoint. The phases are means over all steps of rank 0; backward holds "
            "the communication that it does not hide. Python has what makes it fast: normalized images in memory, "
            "channels innermost, gradients as views of buckets and set to none; it uses Gloo, as muster-train does "
            f"with the same options ({' '.join(OPTIONS[SAME])}, bit for bit Python's arithmetic). With the best "
            "options, which are the defaults, gradients go through shared memory and the optimizer takes one pass. "
            "Image loading is one thread that takes images of 28 x 28 from anywhere in 60,000 into normalized "
            "batches of 128.")
    figures = contest.take_turns("image loading", [contest.Contestant("muster", image_loading)], settings.pairs)
    benchmark.add("image loading", [IMAGES], figures, {IMAGES.name: (results.Goal(limit=2),)})

    if not (tools.peer("torchrun") and DATA.exists()):
        benchmark.notes.append(f"training was not measured: torchrun (python3-torch) or {DATA} "
                               "(dataset-fashion-mnist) is not there")
        return benchmark
    for network in networks:
        losses: dict[str, float] = {}  # the last that each reported, to see that they train the same
        contestants = [contest.Contestant(BEST, lambda: run_muster(network, BEST, losses)),
                       contest.Contestant(SAME, lambda: run_muster(network, SAME, losses)),
                       contest.Contestant(PEER, lambda: run_python(network, losses))]
        samples = contest.take_turns(network.title, contestants, settings.pairs)
        for options, goal in ((SAME, 1.0), (BEST, network.goal)):
            benchmark.add(f"{network.title}, {options}", [STEPS, *PHASES],
                          {results.OURS: samples[options], PEER: samples[PEER]},
                          {STEPS.name: (results.Goal(PEER, times=goal),)})
        benchmark.commands.append(" ".join(["OMP_NUM_THREADS=1", *muster_command(network, OPTIONS[BEST], "FOLDER")]))
        benchmark.notes.append(
            f"{network.title}: mean loss of the last {network.steps} of {network.all_steps} steps: "
            + ", ".join(f"{loss:.6f} ({who})" for who, loss in losses.items()))
    return benchmark
