"""Ways to share a model: time of a step of muster-train, and of the same trainings in PyTorch's own ways."""

import json
import os
import random
import shutil
import statistics
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import contest
import results
import tools

TARGETS = ["//launcher:muster", "//trainer:muster-train"]

RANKS = 2
DEBIAN13 = Path("/var/tmp/muster-debian13")
BUILT13 = "/opt/trainer26/build/muster-train"  # in there
VARIABLES = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
SCRIPTS = Path(__file__).parents[1]
MODELS = SCRIPTS.parents[1] / "test/trainer/models/testdata"
TEXT_BYTES = 1 << 20

GLOO, ALONE = "muster, Gloo", "muster, one rank"
STEP = results.Metric("time of a step", "ms")


@dataclass(frozen=True)
class Shape:
    """A GPT of bytes, and how it is trained."""

    layers: int
    heads: int
    width: int
    context: int
    batch: int  # windows in a step, over all ranks
    report_every: int  # steps
    reports: int  # after the first one, which ends the warm-up
    micro_batches: int = 1

    @property
    def steps(self) -> int:
        return (self.reports + 1) * self.report_every

    def __str__(self) -> str:
        return f"{self.layers} layers, width {self.width}, {self.batch} x {self.context} tokens"


@dataclass(frozen=True)
class Case:
    title: str
    shape: Shape
    flags: list[str]  # of muster-train
    way: str  # of training_parallel.py
    peer: str
    goal: float
    debian13: bool = True  # where the peer is
    one_rank: float = 0  # goal against one rank; 0: it is not measured


def cases() -> list[Case]:
    # 25 M parameters. With 32 tokens per rank, parameters and gradients dominate; with 512,
    # computing does.
    few = Shape(8, 8, 512, context=32, batch=2, report_every=4, reports=6)
    many = Shape(8, 8, 512, context=128, batch=8, report_every=2, reports=4)
    zero, tensor = "ZeroRedundancyOptimizer", "DTensor"
    pipeline, fsdp = "pipelining's GPipe", "FSDP1"
    wide = Shape(2, 8, 512, context=128, batch=8, report_every=4, reports=5)
    slim = Shape(4, 4, 128, context=64, batch=4, report_every=20, reports=5)
    deep = Shape(8, 8, 512, context=128, batch=8, report_every=2, reports=4, micro_batches=8)
    small = Shape(8, 4, 128, context=64, batch=8, report_every=10, reports=5, micro_batches=8)

    def schedule(name: str) -> list[str]:
        return ["--mesh", "pp=2", "--micro-batches", "8", "--pipeline-schedule", name]

    return [
        Case("ZeRO-1, few tokens", few, ["--zero", "1"], "zero", zero, 1.5, debian13=False),
        Case("ZeRO-1, many tokens", many, ["--zero", "1"], "zero", zero, 1.5, debian13=False),
        Case("tensor parallel, wide", wide, ["--mesh", "tp=2"], "tensor", tensor, 1.3, one_rank=1.7),
        Case("tensor parallel, small", slim, ["--mesh", "tp=2"], "tensor", tensor, 1.3),
        Case("pipeline, wide, GPipe", deep, schedule("gpipe"), "pipeline", pipeline, 1.2),
        Case("pipeline, wide, zero bubble", deep, schedule("zero-bubble"), "pipeline", pipeline, 1.2),
        Case("pipeline, small, GPipe", small, schedule("gpipe"), "pipeline", pipeline, 1.2),
        Case("pipeline, small, 1F1B", small, schedule("1f1b"), "pipeline", pipeline, 1.2),
        Case("fully sharded, few tokens", few, ["--zero", "3"], "fsdp", fsdp, 1.0),
        Case("fully sharded, many tokens", many, ["--zero", "3"], "fsdp", fsdp, 1.0),
    ]


def quick(case: Case) -> Case:
    shape = replace(case.shape, width=32, context=16, report_every=1, reports=2)
    return replace(case, shape=shape)


def launch(debian13: bool, folder: str, ranks: int, command: list[str]) -> str:
    """Runs ranks of `command`, here or in Debian 13, and returns what they said. FOLDER, MUSTER_TRAIN and PYTHON in it
    stand for `folder`, which has the text and the peer's scripts, and for the programs there."""
    for file in (SCRIPTS / "training_parallel.py", *MODELS.glob("*.py")):
        shutil.copy(file, folder)
    letters = random.Random(0).choices(b"etaoin shrdlu", k=TEXT_BYTES)
    Path(folder, "text").write_bytes(bytes(letters))
    muster, trainer, there, outside = tools.built("launcher/muster"), tools.built("trainer/muster-train"), folder, []
    if debian13:
        shutil.copy(muster, folder)
        outside = [str(SCRIPTS / "debian13.sh"), str(DEBIAN13), folder]
        muster, trainer, there = "/tmp/bench/muster", BUILT13, "/tmp/bench"
    names = {"FOLDER": there, "MUSTER_TRAIN": trainer, "PYTHON": tools.PYTHON}
    for name, value in names.items():
        command = [word.replace(name, value) for word in command]
    return tools.run([*outside, muster, "run", "--standalone", "--nproc-per-node", str(ranks), "--worker-store=worker",
                      "--no-python", *command], VARIABLES).output


def muster_command(case: Case, shared: bool, comm: str) -> list[str]:
    shape = case.shape
    return ["MUSTER_TRAIN", "--model", "gpt", "--layers", str(shape.layers), "--heads", str(shape.heads),
            "--width", str(shape.width), "--context", str(shape.context), "--batch-size", str(shape.batch),
            *(case.flags if shared else []), "--comm", comm, "--algorithm", "adamw", "--lr", "0.001",
            "--weight-decay", "0.01", "--threads", "1", "--no-eval", "--epochs", "1000", "--max-steps",
            str(shape.steps), "--report-every", str(shape.report_every), "--data", "FOLDER/text", "--test-data",
            "FOLDER/text", "--metrics", "FOLDER/metrics.jsonl"]


def step_time(shape: Shape, times: dict[int, float]) -> contest.Figures:
    """The median over the reports; `times` are when which step was reported."""
    every = shape.report_every
    spans = [times[step] - times[step - every] for step in range(2 * every, shape.steps + 1, every)]
    return {STEP.name: statistics.median(spans) / every * 1e3}


def run_muster(case: Case, name: str, losses: dict[str, float]) -> contest.Figures:
    command = muster_command(case, shared=name != ALONE, comm="gloo" if name == GLOO else "auto")
    with tempfile.TemporaryDirectory() as folder:
        launch(case.debian13, folder, 1 if name == ALONE else RANKS, command)
        lines = [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]
    reports = [line for line in lines if "train/loss" in line]
    losses[name] = reports[-1]["train/loss"]
    return step_time(case.shape, {report["step"]: report["time"] for report in reports})


def run_python(case: Case, losses: dict[str, float]) -> contest.Figures:
    shape = json.dumps({**asdict(case.shape), "steps": case.shape.steps})
    with tempfile.TemporaryDirectory() as folder:
        output = launch(case.debian13, folder, RANKS,
                        ["PYTHON", "FOLDER/training_parallel.py", case.way, shape, "FOLDER/text"])
    said = json.loads(next(line for line in output.splitlines() if line.startswith('{"reports"')))
    losses[case.peer] = said["reports"][-1][2]
    return step_time(case.shape, {step: time for step, time, _ in said["reports"]})


def without(peer13: bool) -> str:
    """Why the cases with a peer here or in Debian 13 cannot be measured; empty: they can."""
    if not peer13:
        return "" if tools.peer("torchrun") else "torchrun (python3-torch) is not there"
    if os.geteuid() != 0:
        return "Debian 13's PyTorch can only be reached by root"
    if not Path(DEBIAN13, ".complete").exists():
        return f"{DEBIAN13} is not there; scripts/compat/torch26.sh makes it"
    if "BENCH_BUILD" in os.environ or not Path(f"{DEBIAN13}{BUILT13}").exists():
        tools.run(["scripts/compat/trainer26.sh", str(DEBIAN13), "build"], deadline_s=7200)
    return ""


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark(
        name="parallel",
        title="Ways to share a model: muster-train and PyTorch's",
        how=f"{RANKS} ranks with a thread each train a GPT of bytes with AdamW in float32. ZeRO-1 is held against "
            "ZeroRedundancyOptimizer under DistributedDataParallel with the PyTorch 1.13.1 whose LibTorch and OpenBLAS "
            "muster-train uses, too; the other ways against PyTorch 2.6 of Debian 13, with muster-train built there "
            "against its LibTorch, and both with its OpenBLAS. The peers (scripts/bench/training_parallel.py) have the "
            "same shapes, batches and micro-batches, and what makes them fast: gradients and parameters as views of "
            "buckets, AdamW fused or of many tensors at once, in 2.6 PyTorch's own attention, queries, keys and values "
            "as one matrix. muster-train has its defaults, which take shared memory; the peers have Gloo, as has "
            f'"{GLOO}". All are started by muster. The time of a step is the median over the reports of a run but '
            "the first, each of which covers some steps.")
    missing = {place: without(place) for place in (False, True)}
    for place, why in missing.items():
        if why:
            peers = "the peers of PyTorch 2.6" if place else "ZeroRedundancyOptimizer"
            benchmark.notes.append(f"{peers}: not measured: {why}")
    for case in cases():
        if missing[case.debian13]:
            continue
        measure_case(quick(case) if settings.quick else case, settings.pairs, benchmark)
    return benchmark


def measure_case(case: Case, pairs: int, benchmark: results.Benchmark) -> None:
    losses: dict[str, float] = {}  # the last that each reported, to see that they train alike

    def ours(name: str) -> contest.Contestant:
        return contest.Contestant(name, lambda: run_muster(case, name, losses))

    contestants = [ours(results.OURS), ours(GLOO), contest.Contestant(case.peer, lambda: run_python(case, losses))]
    goals = [results.Goal(case.peer, times=case.goal)]
    if case.one_rank:
        contestants.append(ours(ALONE))
        goals.append(results.Goal(ALONE, times=case.one_rank))
    samples = contest.take_turns(case.title, contestants, pairs)
    benchmark.add(f"{case.title}: {case.shape}", [STEP], samples, {STEP.name: tuple(goals)})
    command = " ".join(["OMP_NUM_THREADS=1 muster run --standalone --nproc-per-node", str(RANKS), "--no-python",
                        *muster_command(case, shared=True, comm="auto")])
    benchmark.commands.append(command.replace("MUSTER_TRAIN", "muster-train"))
    benchmark.notes.append(f"{case.title}: last losses: "
                           + ", ".join(f"{loss:.4f} ({who})" for who, loss in losses.items()))
