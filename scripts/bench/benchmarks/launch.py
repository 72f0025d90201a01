"""What it costs to start N processes that do nothing, and to see them end."""

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import contest
import launch_micro
import results
import slurm_cluster
import tools

TARGETS = ["//launcher:muster", "//test/bench/launch:time_command", "//test/bench/launch:spawn_loop",
           "//test/bench/launch:spawn_benchmark"]

SIZES = (1, 2, 8, 64, 256, 1024)
QUICK_SIZES = (1, 8)
WORKER = "/bin/true"
LOOP, HYDRA, MPIRUN, SRUN, TORCHRUN = "spawn loop", "mpiexec.hydra", "mpirun", "srun", "torchrun"
TORCHRUN_SCRIPT = "scripts/bench/torchrun.py"
# torchrun's polling interval; its default is 5 s.
MONITOR_INTERVAL_S = 0.01
DEADLINE_S = 30
# Contestants that need seconds where others need milliseconds run fewer rounds from these sizes on.
SLOW_FROM = {TORCHRUN: 1, SRUN: 256}
SLOW_ROUNDS = 2
# From here on a launch is mostly spawns, below it mostly the start of the launcher itself.
MANY = 64

WALL = results.Metric("wall time", "ms")
MEMORY = results.Metric("peak memory", "MiB")

HOW = f"""The whole launch of N times `{WORKER}`: from just before the launcher's process is started until it has been
waited for, by a small C++ program (test/bench/launch/time_command.cc). Its peak memory is what wait4 tells of it
(ru_maxrss): the launcher's own, or that of a process it has waited for if that was larger. The spawn loop is the
limit: posix_spawn N times, then wait N times, and nothing else (test/bench/launch/spawn_loop.cc). Nothing is
redirected or labelled. mpirun may run as root and oversubscribe. srun has a cluster of this machine alone, without
authentication, accounting, control groups and binding; its daemons run before, and what they take is not in its
memory; the next contestant starts when they have cleaned up. torchrun looks at its workers every
{MONITOR_INTERVAL_S * 1000:g} ms; its default is 5 s. It takes part in {SLOW_ROUNDS} rounds, as does srun from
{SLOW_FROM[SRUN]} processes on."""


def commands() -> dict[str, Callable[[int], list[str]]]:
    """Contestant -> what starts N workers. Peers that are not installed are left out."""
    def if_installed(program: str, *flags: str) -> Callable[[int], list[str]] | None:
        path = tools.peer(program)
        return (lambda n: [path, *flags, "-n", str(n), WORKER]) if path else None

    torchrun = [tools.PYTHON, TORCHRUN_SCRIPT]
    known = {
        results.OURS: lambda n: [tools.built("launcher/muster"), "run", "--standalone", "--nproc-per-node", str(n),
                                 "--no-python", WORKER],
        LOOP: lambda n: [tools.built("test/bench/launch/spawn_loop"), str(n), WORKER],
        HYDRA: if_installed("mpiexec.hydra"),
        MPIRUN: if_installed("mpirun", "--allow-run-as-root", "--oversubscribe"),
        SRUN: if_installed("srun", "--quiet", "--overcommit"),
        TORCHRUN: lambda n: [*torchrun, "--standalone", "--nproc_per_node", str(n), "--monitor_interval",
                             str(MONITOR_INTERVAL_S), "--no_python", WORKER],
    }
    return {name: command for name, command in known.items() if command is not None}


def measure_one(command: list[str], variables: dict[str, str]) -> contest.Figures:
    timer = [tools.built("test/bench/launch/time_command"), str(DEADLINE_S)]
    cost = subprocess.run([*timer, *command], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True)
    figures = json.loads(cost.stdout)
    if figures is None:
        raise contest.Withdraws(f"it did not end in {DEADLINE_S} s")
    if figures["exit_code"] != 0:
        sys.exit(f"bench: {' '.join(command)} exited with {figures['exit_code']}: {cost.stderr[-2000:]}")
    return {WALL.name: figures["wall_s"] * 1000, MEMORY.name: figures["peak_rss_kib"] / 1024}


def measure_srun(cluster: slurm_cluster.Cluster, command: list[str], variables: dict[str, str]) -> contest.Figures:
    """What its daemons do when srun has returned is not to be paid for by who comes next."""
    figures = measure_one(command, variables)
    cluster.wait_until_idle()
    return figures


def goals(size: int) -> dict[str, tuple[results.Goal, ...]]:
    near_loop = results.Goal(LOOP, times=1 / 1.15) if size >= MANY else results.Goal(LOOP, beyond=3)
    return {WALL.name: (results.Goal(HYDRA, times=1), near_loop, results.Goal(TORCHRUN, times=100)),
            MEMORY.name: (results.Goal(limit=16),)}


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark(
        "launch", f"Launch: N times {WORKER}", HOW,
        plots=[results.Plot("Start N processes and see them end", WALL.name, "processes"),
               results.Plot("Peak memory of the launcher", MEMORY.name, "processes")])
    starters = commands()
    variables = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    measure_by: dict[str, Callable[[list[str], dict[str, str]], contest.Figures]] = {}
    benchmark.notes += [f"{name} could not be measured: it is not installed" for name in (HYDRA, MPIRUN)
                        if name not in starters]
    with contextlib.ExitStack() as cleaning:
        if SRUN in starters:
            try:
                cluster = cleaning.enter_context(contextlib.closing(slurm_cluster.Cluster()))
                variables.update(cluster.environment)
                measure_by[SRUN] = functools.partial(measure_srun, cluster)
            except slurm_cluster.CannotRun as why:
                del starters[SRUN]
                benchmark.notes.append(f"srun could not be measured: {why}")
        benchmark.commands = [" ".join([Path(words[0]).name, *words[1:]]) for words in (
            command(MANY) for command in starters.values())]
        for size in QUICK_SIZES if settings.quick else SIZES:
            contestants = [
                contest.Contestant(name,
                                   functools.partial(measure_by.get(name, measure_one), command(size), variables),
                                   rounds=SLOW_ROUNDS if size >= SLOW_FROM.get(name, size + 1) else 0)
                for name, command in starters.items()]
            samples = contest.take_turns(f"launch of {size}", contestants, settings.pairs, notes=benchmark.notes)
            # Open MPI 4.1.4 sometimes hangs when many of its processes exit at once; torchrun
            # exceeds the deadline for very many. Contestants that failed with fewer are skipped.
            starters = {name: command for name, command in starters.items() if name in samples}
            benchmark.add(f"{size} process{'es' if size > 1 else ''}", [WALL, MEMORY], samples, goals(size), size)
    launch_micro.add_rows(benchmark, "test/bench/launch/spawn_benchmark", settings)
    return benchmark
