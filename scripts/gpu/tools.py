"""What the checks of scripts/gpu_checks.sh are made of: ranks, the data they train on, and comparisons."""

import gzip
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path


class Failed(Exception):
    """The check has found something wrong; the text says what."""


class Skipped(Exception):
    """The check cannot be made here; the text says why."""


LONGEST = 75  # seconds for one command; a check has three at most, and stays under four minutes


@dataclass
class Place:
    """Where the checks run."""
    comm: str    # muster-train's --comm: nccl, or gloo in a rehearsal
    device: str  # PyTorch's: cuda or cpu
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="gpu_checks-")))

    @property
    def rehearses(self) -> bool:
        return self.device == "cpu"

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def gpu_only(self) -> None:
        if self.rehearses:
            raise Skipped("needs a GPU")


def make_images(folder: Path, train: int = 4096, test: int = 512) -> str:
    """Images of 28 x 28 that can be learned, in MNIST's four files: each class is lit in rows of its own."""
    folder.mkdir(exist_ok=True)
    source = random.Random(7)
    for name, count in (("train", train), ("t10k", test)):
        labels = bytes(source.randrange(10) for _ in range(count))
        images = bytearray()
        for label in labels:
            image = bytearray(source.randbytes(784))
            for row in (2 * label + 3, 2 * label + 4):
                image[28 * row:28 * row + 28] = b"\xff" * 28
            images += image
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(struct.pack(">IIII", 0x803, count, 28, 28) + images)
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + labels)
    return str(folder)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    """Of one of several ranks on the first GPU. NCCL refuses two ranks of one host on one GPU, and so is told that they
    are on two, between which only sockets are left."""
    return {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
            "NCCL_HOSTID": f"host{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
            "NCCL_IB_DISABLE": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


class Ranks:
    """Processes that are the ranks of one job; all end with this object."""

    def __init__(self, place: Place, command: list[str], ranks: int) -> None:
        port = free_port()
        self.logs = [place.path(f"rank{rank}.log") for rank in range(ranks)]
        self.processes = []
        try:
            for rank, log in enumerate(self.logs):
                with open(log, "wb") as file:
                    self.processes.append(subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                                           env=environment(rank, ranks, port)))
        except OSError:
            self.__exit__()
            raise

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def log(self, rank: int) -> str:
        return Path(self.logs[rank]).read_text(errors="replace")

    def wait(self, seconds: float = LONGEST) -> list[int]:
        """The exit codes, once all have ended."""
        end = time.monotonic() + seconds
        try:
            return [process.wait(max(0.1, end - time.monotonic())) for process in self.processes]
        except subprocess.TimeoutExpired:
            raise Failed(f"not all ranks ended within {seconds:.0f} s: {self.log(0)[-600:]}") from None


def run_ranks(place: Place, command: list[str], ranks: int = 1) -> str:
    """What rank 0 printed, of a job that has to succeed."""
    with Ranks(place, command, ranks) as job:
        codes = job.wait()
        for rank, code in enumerate(codes):
            if code != 0:
                raise Failed(f"rank {rank} of {ranks} ended with {code}: {job.log(rank)[-600:]}")
        return job.log(0)


def train(place: Place, name: str, flags: list[str], ranks: int = 1, comm: str = "") -> str:
    """Trains with muster-train; its losses are in NAME.loss. Returns what rank 0 printed."""
    return run_ranks(place, [os.environ["MUSTER_TRAIN"], "--comm", comm or place.comm, "--no-eval", "--loss-log",
                             place.path(f"{name}.loss"), *flags], ranks)


def losses(place: Place, name: str) -> list[float]:
    """Of each step."""
    return [float(line.split()[1]) for line in Path(place.path(f"{name}.loss")).read_text().splitlines()]


def far_apart(one: list[float], other: list[float]) -> float:
    """The largest relative difference."""
    if not one or len(one) != len(other):
        raise Failed(f"{len(one)} losses beside {len(other)}")
    return max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(one, other))


def at_most(what: str, value: float, limit: float) -> str:
    """The text of the table, if `value` is at most `limit`."""
    if not value <= limit:  # also a NaN
        raise Failed(f"{what} {value:.1e}, more than {limit:.0e}")
    return f"{what} {value:.1e} (limit {limit:.0e})"


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess:
    """A command, whatever it ends with."""
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=LONGEST,
                          check=False)


def muster() -> str:
    """The launcher."""
    path = os.environ.get("MUSTER", "")
    if not path:
        raise Skipped("no muster: name one with MUSTER")
    return path


def python(script: str, *arguments: str) -> list[str]:
    return [os.environ.get("PYTHON", sys.executable), str(Path(__file__).with_name(script)), *arguments]
