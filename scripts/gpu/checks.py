"""The checks of scripts/gpu_checks.sh, each by its name."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import tools
from tools import Failed, Place, Skipped, at_most, far_apart, losses, train

# In float64 the order of a GPU's additions does not matter.
EXACT = ["--dataset=idx", "--model=cnn", "--dtype=float64", "--batch-size=64", "--lr=0.02", "--max-steps=40",
         "--optimizer=reference"]


PYTHON_EXACT = ["--steps", "40", "--batch-size", "64", "--dtype", "float64"]


def data(place: Place) -> list[str]:
    folder = place.folder / "images"
    if not folder.exists():
        tools.make_images(folder)
    return ["--data", str(folder)]


def curve(place: Place) -> str:
    """one rank on the GPU has the losses of Python on the CPU, in float64"""
    train(place, "ours", EXACT + data(place))
    tools.run_ranks(place, tools.python("python_ddp.py", "cnn", "--device", "cpu", *data(place), *PYTHON_EXACT,
                                        "--loss-log", place.path("python.loss")))
    return at_most("relative difference", far_apart(losses(place, "ours"), losses(place, "python")), 1e-7)


def two_ranks(place: Place) -> str:
    """two ranks have the losses of one, in float64"""
    train(place, "two", EXACT + data(place), ranks=2)
    train(place, "one", EXACT + data(place))
    return at_most("relative difference", far_apart(losses(place, "two"), losses(place, "one")), 1e-7)


def parity(place: Place) -> str:
    """the weights of Python's DDP on the same device, in float64"""
    import torch  # pylint: disable=import-outside-toplevel
    train(place, "ours", EXACT + data(place) + ["--checkpoint", place.path("ours.pt")])
    tools.run_ranks(place, tools.python("python_ddp.py", "cnn", "--device", place.device, *data(place), *PYTHON_EXACT,
                                        "--checkpoint", place.path("python.pt")))
    ours, theirs = torch.load(place.path("ours.pt")), torch.load(place.path("python.pt"))
    if sorted(ours) != sorted(theirs):
        raise Failed(f"not the same names: {sorted(ours)}, {sorted(theirs)}")
    apart = max((ours[name] - theirs[name]).abs().max().item() for name in ours)
    return at_most("difference of any weight", apart, 1e-9)


def hooks(place: Place) -> str:
    """gradients that are compressed on their way train as well as whole ones"""
    flags = ["--dataset=idx", "--model=cnn", "--batch-size=64", "--lr=0.002", "--max-steps=40", *data(place)]
    train(place, "none", flags, ranks=2)
    found = []
    for hook in ("fp16", "bf16"):
        train(place, hook, flags + ["--comm-hook", hook], ranks=2)
        apart = far_apart(losses(place, hook), losses(place, "none"))
        if apart == 0:
            raise Failed(f"{hook} has changed nothing")
        found.append(at_most(hook, apart, 1e-2))
    return ", ".join(found)


def bf16(place: Place) -> str:
    """bfloat16 with batch normalization over two ranks stays near float32"""
    flags = ["--dataset=idx", "--model=resnet18", "--batch-size=32", "--max-steps=8", "--lr=0.002", "--sync-bn",
             *data(place)]
    train(place, "float32", flags, ranks=2)
    train(place, "bf16", flags + ["--bf16"], ranks=2)
    return at_most("relative difference", far_apart(losses(place, "bf16"), losses(place, "float32")), 0.1)


def resume(place: Place) -> str:
    """a run that goes on has the bits of one that was never stopped (--deterministic)"""
    flags = ["--dataset=idx", "--model=cnn", "--batch-size=64", "--deterministic", *data(place)]
    train(place, "whole", flags + ["--max-steps=30", "--checkpoint", place.path("whole.pt")])
    for steps in ("15", "30"):
        train(place, "part", flags + [f"--max-steps={steps}", "--checkpoint-dir", place.path("run"), "--checkpoint",
                                      place.path("part.pt")])
    for kind in ("loss", "pt"):
        if Path(place.path(f"whole.{kind}")).read_bytes() != Path(place.path(f"part.{kind}")).read_bytes():
            raise Failed(f"whole.{kind} and part.{kind} differ")
    return "30 losses and all weights are the same"


def killed_peer(place: Place) -> str:
    """a rank whose peer is killed ends with one sentence"""
    log = Path(place.path("killed.loss"))
    command = [os.environ["MUSTER_TRAIN"], "--comm", place.comm, "--no-eval", "--dataset=idx", "--model=cnn",
               "--epochs=1000", "--loss-log", str(log), "--timeout=60", *data(place)]
    with tools.Ranks(place, command, 2) as job:
        end = time.monotonic() + 60
        while not log.exists() or len(log.read_bytes().splitlines()) < 5:
            if job.processes[0].poll() is not None or time.monotonic() > end:
                raise Failed(f"the ranks made no steps: {job.log(0)[-600:]}")
            time.sleep(0.05)
        job.processes[1].kill()
        killed = time.monotonic()
        code = job.wait(120)[0]
        seconds = time.monotonic() - killed
        sentences = re.findall(r"^muster-train: rank 0: .*", job.log(0), re.MULTILINE)
        if code != 1 or len(sentences) != 1:
            raise Failed(f"exit code {code}, {len(sentences)} sentences: {job.log(0)[-600:]}")
    return f"exit code 1 after {seconds:.1f} s: {sentences[0][22:100]}"


def gpus_counted() -> int:
    import torch  # pylint: disable=import-outside-toplevel
    return torch.cuda.device_count()


def launcher_gpus(place: Place) -> str:
    """--nproc-per-node=gpu starts a worker for each GPU"""
    place.gpu_only()
    ran = tools.run([tools.muster(), "run", "--standalone", "--nproc-per-node=gpu", "--no-python", "sh", "-c",
                     "echo worker $LOCAL_RANK of $WORLD_SIZE"])
    workers = ran.stdout.count("worker ")
    if ran.returncode != 0 or workers != gpus_counted():
        raise Failed(f"exit code {ran.returncode}, {workers} workers, {gpus_counted()} GPUs: {ran.stderr[-300:]}")
    return f"{workers} of {workers}"


def devices(place: Place) -> str:
    """--devices chooses, and refuses what is not there"""
    place.gpu_only()
    start = [tools.muster(), "run", "--standalone", "--nproc-per-node=1", "--no-python"]
    ran = tools.run([*start[:4], "--devices=0", *start[4:], "sh", "-c", "echo has $CUDA_VISIBLE_DEVICES"])
    if ran.returncode != 0 or "has 0" not in ran.stdout:
        raise Failed(f"--devices=0: exit code {ran.returncode}: {ran.stdout[-200:]}{ran.stderr[-300:]}")
    ran = tools.run([*start[:4], "--devices=99", *start[4:], "true"])
    if ran.returncode != 2 or "device 99" not in ran.stderr:
        raise Failed(f"--devices=99: exit code {ran.returncode}: {ran.stderr[-300:]}")
    return "0 is given, 99 is refused"


def conflicts(place: Place) -> str:
    """a run that takes another run's GPU says so, and muster ps shows both"""
    place.gpu_only()
    start = [tools.muster(), "run", "--standalone", "--nproc-per-node=1", "--devices=0", "--no-python"]
    variables = {"MUSTER_RUNS_DIR": place.path("runs")}
    Path(place.path("runs")).mkdir()
    with subprocess.Popen([*start, "sh", "-c", "echo started; exec sleep 60"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **variables}) as first:
        try:
            if "started" not in first.stdout.readline():  # nothing, if it has ended
                raise Failed("the first run did not start")
            second = tools.run([*start, tools.muster(), "ps"], **variables)
        finally:
            first.terminate()
    if "device 0 is also used by run" not in second.stderr or second.stdout.count("running") < 2:
        raise Failed(f"the second run said: {second.stderr[-400:]}{second.stdout[-400:]}")
    return "the second run names the first"


def cpus_in(text: str) -> set[int]:
    """Of a list such as 0-3,8."""
    ends = [(part.split("-") + part.split("-"))[:2] for part in text.split(",")]
    return {cpu for first, last in ends for cpu in range(int(first), int(last) + 1)}


def numa(place: Place) -> str:
    """--numa-binding puts a worker beside its GPU"""
    place.gpu_only()
    bus = tools.run(["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader", "-i", "0"]).stdout.strip().lower()
    near = Path("/sys/bus/pci/devices", bus[4:], "local_cpulist")
    if not near.exists():
        raise Skipped(f"{near} is not there")
    ran = tools.run([tools.muster(), "run", "--standalone", "--nproc-per-node=1", "--numa-binding=node", "--no-python",
                     "sh", "-c", "grep Cpus_allowed_list /proc/self/status"])
    if ran.returncode != 0:
        raise Failed(f"exit code {ran.returncode}: {ran.stderr[-400:]}")
    worker, gpu = ran.stdout.split()[-1], near.read_text().strip()
    if not cpus_in(worker) <= cpus_in(gpu):
        raise Failed(f"the worker may use {worker}, and the GPU is near {gpu}")
    return f"the GPU is near {gpu}, and the worker may use {worker}"


def health(place: Place) -> str:
    """muster gpus lists what nvidia-smi lists"""
    place.gpu_only()
    ran = tools.run([tools.muster(), "gpus"])
    uuids = re.findall(r"GPU-[0-9a-f-]{36}", tools.run(["nvidia-smi", "-L"]).stdout)
    missing = [uuid for uuid in uuids if uuid not in ran.stdout]
    if ran.returncode != 0 or missing or not uuids:
        raise Failed(f"exit code {ran.returncode}, missing {missing}: {ran.stdout[-400:]}{ran.stderr[-300:]}")
    check = tools.run([tools.muster(), "gpus", "--check"])
    return f"{len(uuids)} listed; --check: {'fit' if check.returncode == 0 else check.stderr.strip()[-100:]}"


def our_speed(printed: str) -> float:
    found = re.search(r"^speed +([0-9.]+) ", printed, re.MULTILINE)
    if found is None:
        raise Failed(f"no speed in {printed[-300:]}")
    return float(found.group(1))


def speed(place: Place) -> str:
    """ResNet-18 beside Python's DDP: images in a second"""
    batch, steps = ("32", "4") if place.rehearses else ("256", "200")
    flags = ["--batch-size", batch, "--lr", "0.002", *data(place)]
    theirs = tools.run_ranks(place, tools.python("python_ddp.py", "resnet18", "--device", place.device, "--steps",
                                                 steps, *flags))
    peer = float(theirs.split("samples per second")[1])
    common = ["--dataset=idx", "--model=resnet18", "--epochs=1000", "--max-steps", steps, *flags]
    same = our_speed(train(place, "same", common + ["--optimizer=reference", "--loader-threads=0"]))
    best = our_speed(train(place, "best", common))
    return (f"muster-train {best:.0f}, with the same options {same:.0f}, Python {peer:.0f}: "
            f"{best / peer:.2f} and {same / peer:.2f} times")


CHECKS: list[Callable[[Place], str]] = [curve, two_ranks, parity, hooks, bf16, resume, killed_peer, launcher_gpus,
                                        devices, conflicts, numa, health, speed]


def name_of(check: Callable[[Place], str]) -> str:
    return check.__name__.replace("_", "-")


def verdict(check: Callable[[Place], str], place: Place) -> tuple[str, str]:
    try:
        return "ok", check(place)
    except Failed as error:
        return "FAILED", str(error)
    except Skipped as error:
        return "left out", str(error)
    except subprocess.TimeoutExpired as error:
        return "FAILED", f"{error.cmd[0]} took longer than {error.timeout} s"
    except Exception as error:  # pylint: disable=broad-except # the table of the others is worth having
        return "FAILED", f"{type(error).__name__}: {error}"


def main(arguments: list[str]) -> int:
    names = {name_of(check): check for check in CHECKS}
    if "--list" in arguments or "--help" in arguments or "-h" in arguments:
        print("usage: scripts/gpu_checks.sh [--rehearse] [CHECK...]\n")
        for name, check in names.items():
            print(f"  {name:14} {check.__doc__}")
        return 0
    rehearses = "--rehearse" in arguments
    wanted = [argument for argument in arguments if argument != "--rehearse"] or list(names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        print(f"gpu_checks: there is no check {unknown[0]}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    import torch  # pylint: disable=import-outside-toplevel
    if not rehearses and not torch.cuda.is_available():
        print("gpu_checks: PyTorch sees no GPU; --rehearse shows on the CPU that the checks themselves work",
              file=sys.stderr)
        return 2
    device = "cpu" if rehearses else "cuda"
    machine = "a rehearsal on the CPU, which says nothing about a GPU" if rehearses else torch.cuda.get_device_name(0)
    print(f"gpu_checks: {machine}; PyTorch {torch.__version__}", flush=True)
    rows = []
    for name in wanted:
        place = Place("gloo" if rehearses else "nccl", device)
        begun = time.monotonic()
        try:
            result, detail = verdict(names[name], place)
        finally:
            shutil.rmtree(place.folder, ignore_errors=True)
        rows.append((name, result, f"{time.monotonic() - begun:.0f} s", " ".join(detail.split())))
        print(f"{result:8} {name}", flush=True)
    print("\n| check | result | took | what was found |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if any(row[1] == "FAILED" for row in rows) else 0


sys.exit(main(sys.argv[1:]))
