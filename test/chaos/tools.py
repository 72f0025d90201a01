"""What the harness runs, and what this machine and these binaries can do."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
# Namespaces do not isolate control groups; the network namespace's number does.
_GROUP_PREFIX = f"muster-chaos-{os.stat('/proc/self/ns/net').st_ino}"


@dataclass(frozen=True)
class Tools:
    muster: str
    musterd: str
    worker: str
    clock_skew: str
    identity: str

    @staticmethod
    def find() -> "Tools":
        """From MUSTER, MUSTERD, CHAOS_WORKER, CLOCK_SKEW and IDENTITY_PROGRAM; by default what Bazel has built here."""
        def path(variable: str, built: str) -> str:
            return os.path.abspath(os.environ.get(variable, f"bazel-bin/{built}"))

        return Tools(path("MUSTER", "launcher/muster"), path("MUSTERD", "rendezvous/musterd"),
                     path("CHAOS_WORKER", "test/chaos/chaos_worker"),
                     path("CLOCK_SKEW", "test/chaos/libclock_skew.so"),
                     path("IDENTITY_PROGRAM", "test/chaos/identity_program"))

    def missing(self) -> list[str]:
        return [path for path in vars(self).values() if not os.path.exists(path)]


# Muster's features that a case may need: the binary, and the flag in its --help that shows the
# feature. Reconnecting and returning after an eviction came together with the daemon's journal.
_FEATURES = {
    "state-dir": ("musterd", "--state-dir"),
    "return": ("musterd", "--state-dir"),
    "stopped-workers": ("musterd", "--state-dir"),
    "hang-timeout": ("muster", "--hang-timeout"),
    "health-check": ("muster", "--health-check"),
}


def has_feature(tools: Tools, feature: str) -> bool:
    program, flag = _FEATURES[feature]
    return flag in _help(*([tools.muster, "run"] if program == "muster" else [tools.musterd]))


@cache
def _help(*command: str) -> str:
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=False).stdout


def _can_make_group(controller: str) -> bool:
    group = _CGROUPS / controller / f"{_GROUP_PREFIX}-probe"
    try:
        group.mkdir()
        group.rmdir()
    except OSError:
        return False
    return True


def _can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    tried = ["strace", "-o", "/dev/null", "-e", "inject=fdatasync:delay_enter=1", "true"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def _can_filter() -> bool:
    """Tried with what the cases need, in the harness's own network namespace, where nothing uses that port."""
    rules = (
        ["-p", "tcp", "--dport", "9", "-j", "REJECT", "--reject-with", "tcp-reset"],
        ["-p", "tcp", "--dport", "9", "-m", "statistic", "--mode", "random", "--probability", "0.5", "-j", "DROP"],
    )
    return all(
        subprocess.run(["iptables", action, "INPUT", *rule], capture_output=True, check=False).returncode == 0
        for rule in rules for action in ("-A", "-D")
    )


# The machine's features that a case may need, with the sentence for a machine without; the first
# one that is missing is reported.
_MACHINE: dict[str, list[tuple[Callable[[], bool], str]]] = {
    "freezer": [(lambda: _can_make_group("freezer"), "there is no v1 freezer control group that we may use")],
    "memory": [(lambda: _can_make_group("memory"), "there is no v1 memory control group that we may use")],
    "pids": [(lambda: _can_make_group("pids"), "there is no v1 pids control group that we may use")],
    "strace": [(_can_trace, "strace is missing or may not trace")],
    "iptables": [
        (lambda: shutil.which("iptables") is not None, "iptables is missing (package iptables)"),
        (_can_filter, "this kernel does not let iptables drop and reject packets"),
    ],
    "tc": [(lambda: shutil.which("tc") is not None, "tc is missing (package iproute2)")],
}


@cache
def why_not_here(need: str) -> str | None:
    """None if this machine has what a case needs, else the reason why the case cannot be injected."""
    return next((reason for probe, reason in _MACHINE[need] if not probe()), None)


class ControlGroup:
    """A v1 control group for some processes; a context manager that removes it when they are gone."""

    def __init__(self, controller: str, name: str, **limits: str):
        self.path = _CGROUPS / controller / f"{_GROUP_PREFIX}-{name}"
        self._limits = limits

    def __enter__(self) -> "ControlGroup":
        self.path.mkdir(exist_ok=True)
        for name, value in self._limits.items():
            self.write(name.replace("__", "."), value)
        return self

    def write(self, name: str, value: str | int) -> None:
        (self.path / name).write_text(str(value), encoding="ascii")

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="ascii")

    def add(self, pid: int) -> None:
        self.write("cgroup.procs", pid)

    def entrance(self) -> list[str]:
        """A command that executes its arguments inside the group."""
        return ["sh", "-c", f'echo $$ >{self.path}/cgroup.procs && exec "$@"', "sh"]

    def __exit__(self, *_: object) -> None:
        # Remaining processes go back to where they would be without us.
        for pid in self.read("cgroup.procs").split():
            try:
                (self.path.parent / "cgroup.procs").write_text(pid, encoding="ascii")
            except OSError:
                pass  # It has ended in between.
        for child in sorted(self.path.glob("**/"), reverse=True):
            child.rmdir()
