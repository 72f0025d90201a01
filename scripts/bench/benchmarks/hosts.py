"""What it costs to start workers on N hosts by ssh, and to see them end."""

import contextlib
import functools
import json
import os
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import contest
import results
import ssh_cluster
import tools

TARGETS = ["//launcher:muster", "//test/bench/launch:time_command", "//test/bench/launch:meeting_worker"]

SIZES = (2, 8, 32)
QUICK_SIZES = (2, 4)
WORKERS = 2  # on each host
HYDRA, MPIRUN, PDSH = "mpiexec.hydra", "mpirun", "pdsh"
FIRST, SENT = "muster, first", "muster, sent"
ALONE = "--ssh-control-persist=0"  # with connections of its own
FAN_OUTS = (64, 4, 2)
DEADLINE_S = 120
# The CPU share of each machine with a CPU of its own: at most two CPUs together.
SHARE = 0.1
SLOW_SIZES = (4, 16)
SLOW_ROUNDS = 2

RUNNING = results.Metric("all workers run", "ms")
WALL = results.Metric("wall time", "ms")

HOW = f"""N hosts are network namespaces of this machine, each with a real sshd (Debian's, without PAM) and a home
folder of its own, whose sshds, keys and ssh configuration are the same for everybody; commands are typed on a machine
that is none of them. Each host gets {WORKERS} workers, which end when all workers of the job have begun
(test/bench/launch/meeting_worker.cc). Both times run from just before the launcher's process is started: until the
last worker's first instruction, and until the launcher has been waited for. "{results.OURS}" is a command that
follows another to the same hosts within a minute, as it does when a job is started again: ssh has kept the
connections (--ssh-control-persist). "{FIRST}" is one that none was kept for, as for everybody else. "{SENT}" is such a
first one on hosts that do not have Muster, with empty caches: each is sent the program. pdsh is the floor: one ssh
for each host, all at once, and a shell that starts the workers; it does nothing else. mpiexec.hydra and mpirun start
nothing but these workers, which are no MPI programs. Nobody but Muster keeps connections by itself; where ssh's
configuration says so they are kept for everybody, which is a case of its own; by fan-out, and with processors of
their own, nobody keeps any. All hosts share this machine's processors. So that a host's own processor can be seen,
the last cases give every host, and the machine where the command is typed, a control group with {SHARE:g} of a
processor: machines that are {1 / SHARE:g} times slower, but each for itself."""


def commands(cluster: ssh_cluster.Cluster) -> dict[str, Callable[[int, list[str]], list[str]]]:
    """Contestant -> what starts a job on the first N hosts. Peers that are not installed are left out."""
    ssh = f"{cluster.folder}/bin/ssh"

    def hosts(n: int, suffix: str = "") -> str:
        return ",".join(name + suffix for name in cluster.names[:n])

    def if_installed(program: str, words: Callable[[int, list[str]], list[str]]):
        path = tools.peer(program)
        return (lambda n, worker: [path, *words(n, worker)]) if path else None

    known = {
        results.OURS: lambda n, worker: muster(tools.built("launcher/muster"), cluster.names[:n], worker),
        HYDRA: if_installed("mpiexec.hydra", lambda n, worker: [
            "-launcher", "ssh", "-launcher-exec", ssh, "-iface", "hosts", "-hosts", hosts(n), "-ppn", str(WORKERS),
            "-n", str(WORKERS * n), *worker]),
        MPIRUN: if_installed("mpirun", lambda n, worker: [
            "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm_rsh_agent", ssh, "--mca",
            "oob_tcp_if_include", "10.98.0.0/24", "--mca", "routed", "direct", "--host", hosts(n, f":{WORKERS}"), "-np",
            str(WORKERS * n), *worker]),
        PDSH: if_installed("pdsh", lambda n, worker: [
            "-R", "ssh", "-f", str(len(cluster.names)), "-w", hosts(n),
            " & ".join([" ".join(worker)] * WORKERS) + " & wait"]),
    }
    return {name: command for name, command in known.items() if command is not None}


def muster(program: str, names: list[str], worker: list[str], *flags: str) -> list[str]:
    hosts = ",".join(f"{name}:{WORKERS}" for name in names)
    return [program, "run", f"--hosts={hosts}", *flags, "--no-python", *worker]


def measure_one(command_of: Callable[[list[str]], list[str]], workers: int, folder: Path, environment: dict[str, str],
                prepare: Callable[[], None] = lambda: None) -> contest.Figures:
    """`command_of` makes the command of a worker's."""
    prepare()
    meeting = folder / "meeting"
    meeting.write_bytes(bytes(16))
    command = command_of([tools.built("test/bench/launch/meeting_worker"), str(meeting), str(workers)])
    cost = subprocess.run([tools.built("test/bench/launch/time_command"), str(DEADLINE_S), *command], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=True)
    figures = json.loads(cost.stdout)
    if figures is None:
        raise contest.Withdraws(f"it did not end in {DEADLINE_S} s")
    if figures["exit_code"] != 0:
        sys.exit(f"bench: {' '.join(command)} exited with {figures['exit_code']}: {cost.stderr[-2000:]}")
    _, is_complete, complete_ns = struct.unpack("=IIq", meeting.read_bytes())
    if not is_complete:
        sys.exit(f"bench: {' '.join(command)} has not started all workers, and exited with 0")
    return {RUNNING.name: complete_ns / 1e6 - figures["start_s"] * 1000, WALL.name: figures["wall_s"] * 1000}


def contestant(name: str, command_of: Callable[[list[str]], list[str]], cluster: ssh_cluster.Cluster, size: int,
               **more) -> contest.Contestant:
    return contest.Contestant(name, functools.partial(
        measure_one, command_of, WORKERS * size, cluster.folder, cluster.environment, **more))


def everybody(cluster: ssh_cluster.Cluster, command: Callable[[list[str]], list[str]],
              size: int) -> list[contest.Contestant]:
    """`command` makes what runs words where commands are typed."""
    return [contestant(name, lambda worker, words=words: command(words(size, worker)), cluster, size)
            for name, words in commands(cluster).items()]


def compare(benchmark: results.Benchmark, cluster: ssh_cluster.Cluster, settings: tools.Settings) -> None:
    program = tools.built("launcher/muster")
    sent = cluster.with_own_program(program)
    starters = commands(cluster)
    benchmark.notes += [f"{name} could not be measured: it is not installed" for name in (HYDRA, MPIRUN, PDSH)
                        if name not in starters]
    benchmark.commands = [shown([Path(words[0]).name, *words[1:]], cluster)
                          for words in (command(2, ["meeting_worker", "FILE", "4"]) for command in starters.values())]
    goals = (results.Goal(HYDRA, times=1), results.Goal(MPIRUN, times=1))
    for size in QUICK_SIZES if settings.quick else SIZES:
        contestants = everybody(cluster, cluster.command, size)
        contestants.append(contestant(
            FIRST, lambda worker: cluster.command(muster(program, cluster.names[:size], worker, ALONE)), cluster, size))
        contestants.append(contestant(
            SENT, lambda worker: sent.command(muster(sent.path, cluster.names[:size], worker, ALONE)), cluster, size,
            prepare=cluster.forget_caches))
        samples = contest.take_turns(f"{size} hosts", contestants, settings.pairs, notes=benchmark.notes)
        benchmark.add(f"{size} hosts", [RUNNING, WALL], samples, {RUNNING.name: goals, WALL.name: goals}, size)


def compare_kept(benchmark: results.Benchmark, cluster: ssh_cluster.Cluster, settings: tools.Settings) -> None:
    """With a configuration of ssh that keeps connections for everybody."""
    size = (QUICK_SIZES if settings.quick else SIZES)[-1]
    with cluster.keeping_connections():
        samples = contest.take_turns(f"{size} hosts, kept", everybody(cluster, cluster.command, size), settings.pairs,
                                     notes=benchmark.notes)
    benchmark.add(f"{size} hosts, connections kept for everybody", [RUNNING, WALL], samples)


def fan_outs(cluster: ssh_cluster.Cluster, command: Callable[[list[str]], list[str]], size: int,
             counts: tuple[int, ...]) -> list[contest.Contestant]:
    """Muster with its own fan-out, and with each of these; no connection is kept."""
    flags = {results.OURS: (ALONE,), **{f"--fanout={count}": (ALONE, f"--fanout={count}") for count in counts}}
    return [contestant(name, lambda worker, more=more: command(
        muster(tools.built("launcher/muster"), cluster.names[:size], worker, *more)), cluster, size)
            for name, more in flags.items()]


def compare_fan_outs(benchmark: results.Benchmark, cluster: ssh_cluster.Cluster, settings: tools.Settings) -> None:
    size = (QUICK_SIZES if settings.quick else SIZES)[-1]
    samples = contest.take_turns(f"{size} hosts by fan-out", fan_outs(cluster, cluster.command, size, FAN_OUTS),
                                 settings.pairs)
    benchmark.add(f"{size} hosts by fan-out", [RUNNING, WALL], samples)


def compare_on_own_processors(benchmark: results.Benchmark, cluster: ssh_cluster.Cluster,
                              settings: tools.Settings) -> None:
    rounds = min(settings.pairs, SLOW_ROUNDS)
    try:
        with ssh_cluster.OwnProcessors(cluster, SHARE) as processors:
            for size in QUICK_SIZES if settings.quick else SLOW_SIZES:
                contestants = fan_outs(cluster, processors.command, size, (4, 2))
                contestants += [one for one in everybody(cluster, processors.command, size)
                                if one.name in (HYDRA, PDSH)]
                samples = contest.take_turns(f"{size} hosts with processors", contestants, rounds, warm_up=0,
                                             notes=benchmark.notes)
                benchmark.add(f"{size} hosts, {SHARE:g} of a processor each", [RUNNING, WALL], samples)
    except ssh_cluster.CannotRun as why:
        benchmark.notes.append(f"hosts with processors of their own could not be measured: {why}")


def shown(words: list[str], cluster: ssh_cluster.Cluster) -> str:
    return shlex.join(words).replace(str(cluster.folder), "FOLDER")


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark(
        "hosts", f"Hosts by ssh: {WORKERS} workers on each of N", HOW,
        plots=[results.Plot(f"Start {WORKERS} workers on each of N hosts", RUNNING.name, "hosts")])
    load = os.getloadavg()[0]
    try:
        with contextlib.closing(ssh_cluster.Cluster(max(SIZES))) as cluster:
            compare(benchmark, cluster, settings)
            compare_kept(benchmark, cluster, settings)
            compare_fan_outs(benchmark, cluster, settings)
            compare_on_own_processors(benchmark, cluster, settings)
    except ssh_cluster.CannotRun as why:
        benchmark.notes.append(f"it could not be measured: {why}")
    benchmark.notes.append(f"Load of the machine just before: {load:.2f}.")
    return benchmark
