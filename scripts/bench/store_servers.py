"""The servers of c10d's TCPStore protocol that the store's benchmark holds against each other."""

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import results
import tools

TORCH = "torch"
# PyTorch's own server lives in the process with is_master. It serves until its standard input ends.
_TORCH_SERVER = """
import datetime, sys
import torch.distributed as d
store = d.TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=300), False)
print(store.port, flush=True)
sys.stdin.read()
"""
# A thousand that wait, 900 that are idle, and some spare.
_DESCRIPTORS = 4096


@dataclass(frozen=True)
class Server:
    port: int
    pid: int

    def resident_kib(self) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def allow_descriptors() -> None:
    """For this process and those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < _DESCRIPTORS:
        sys.exit(f"bench: the store's benchmark needs {_DESCRIPTORS} file descriptors, the hard limit is {hard}")
    if soft < _DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, hard))


@contextlib.contextmanager
def serve(name: str) -> Iterator[Server]:
    """A fresh server of Muster's or PyTorch's, which ends with the context."""
    with (_muster() if name == results.OURS else _torch()) as server:
        yield server


@contextlib.contextmanager
def _muster() -> Iterator[Server]:
    ready, write_end = os.pipe()
    process = subprocess.Popen([tools.built("launcher/muster"), "store", "--port=0", f"--ready-fd={write_end}"],
                               pass_fds=[write_end], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        with os.fdopen(ready) as announcement:
            yield Server(_port(announcement.readline(), "muster store"), process.pid)
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def _torch() -> Iterator[Server]:
    with subprocess.Popen([tools.PYTHON, "-c", _TORCH_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:  # Whose end closes its input.
        yield Server(_port(process.stdout.readline(), "PyTorch's TCPStore"), process.pid)


def _port(line: str, who: str) -> int:
    if not line:
        sys.exit(f"bench: {who} did not start")
    return int(line)
