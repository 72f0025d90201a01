"""The programs under test, the peers, and the load generators; how they are run and what a run of one costs."""

import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# A peer's name in reports -> its Debian package, installed by scripts/bench/install_peers.sh.
PACKAGES = {
    "torch": "python3-torch", "mpiexec.hydra": "mpich", "mpirun": "openmpi-bin", "slurm": "slurm-wlm",
    "etcd": "etcd-server", "pdsh": "pdsh", "sshd": "openssh-server",
}
PYTHON = "/usr/bin/python3"  # Debian's, that has Debian's torch
TORCHRUN = [PYTHON, str(Path(__file__).parent / "torchrun.py")]  # Debian's; torchrun.py says why not as it is


@dataclass(frozen=True)
class Settings:
    pairs: int = 5
    quick: bool = False  # small sizes and few rounds: to see that everything works, not for figures


def built_folder() -> str:
    return os.path.abspath(os.environ.get("BENCH_BIN", "bazel-bin"))


def built(target: str) -> str:
    """The path of what Bazel built: "launcher/muster". BENCH_BIN names another bazel-bin."""
    path = os.path.join(built_folder(), target)
    if not os.path.exists(path):
        sys.exit(f"bench: {path} is not there; scripts/bench.sh builds it")
    return path


def peer(program: str) -> str | None:
    """The path of a peer, or None where it is not installed."""
    return shutil.which(program)


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_seconds: float  # of it and of every process that it waited for
    exit_code: int
    output: str


def run(command: list[str], variables: dict[str, str] | None = None, deadline_s: float = 600) -> Cost:
    """Runs a command to its end. Exits with a sentence if it does not end in time, or fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    try:
        done = subprocess.run(command, env={**os.environ, **(variables or {})}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=deadline_s,
                              check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"bench: {' '.join(command)} did not end in {deadline_s:g} s")
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} exited with {done.returncode}: {done.stdout[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, done.returncode, done.stdout)
