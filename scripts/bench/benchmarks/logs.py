"""The workers' output, on its way to files and the console."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import contest
import launch_micro
import results
import tools

TARGETS = ["//launcher:muster", *(f"//test/bench/logs:{name}" for name in (
    "log_writer", "read_console", "count_lines", "line_prefixer_benchmark"))]

WORKERS = 8
LINE_BYTES = 100  # As in test/bench/logs/numbered_line.h.
WORKER_MIB, QUICK_WORKER_MIB = 32, 2
TORCHRUN, HYDRA = "torchrun", "mpiexec.hydra"
TORCHRUN_SCRIPT = "scripts/bench/torchrun.py"
MONITOR_INTERVAL_S = 0.01
DEADLINE_S = 300

THROUGHPUT = results.Metric("throughput", "MiB/s", higher_is_better=True)
LINES = results.Metric("lines in a second", "/s", higher_is_better=True)
CPU = results.Metric("processor time for a GiB, everyone's", "s")
LAUNCHER_CPU = results.Metric("processor time for a GiB, without the workers'", "s")
LOST_ON_CONSOLE = results.Metric("lines lost or broken on the console", "")
LOST_IN_FILES = results.Metric("lines lost or broken in the files", "")
ALL = [THROUGHPUT, LINES, CPU, LAUNCHER_CPU, LOST_ON_CONSOLE, LOST_IN_FILES]

HOW = f"""{WORKERS} workers (test/bench/logs/log_writer.cc) write {WORKER_MIB} MiB each of numbered lines of
{LINE_BYTES} bytes to stdout as fast as they can, 4 KiB with each write(). Each line goes to the worker's file and,
labelled with its rank, to the console, which is a pipe that a small C++ program empties (read_console.cc). The time
runs from the first worker's first line until the last line is read there. Processor time is user and system time of
the launcher, the workers and every process between them, from the first line at the console to the end, so that
Python's import of torch is not in it; "without the workers'" leaves out what the workers say of themselves. The
reader's is in neither. torchrun's workers write their files by themselves, and it reads those; Muster reads pipes and
writes the files. mpiexec.hydra labels the lines and has no files. Files are in memory (/dev/shm), where there is one.
Every line is counted at both places, and has to be whole and in its worker's order. torchrun looks at its workers
every {MONITOR_INTERVAL_S * 1000:g} ms, as it could not end sooner than its default of 5 s otherwise."""


def commands() -> dict[str, Callable[[Path, list[str]], list[str]]]:
    """Contestant -> the command for a folder of logs and a worker's command."""
    torchrun = [tools.PYTHON, TORCHRUN_SCRIPT]
    known = {
        results.OURS: lambda folder, worker: [
            tools.built("launcher/muster"), "run", "--standalone", "--nproc-per-node", str(WORKERS), "--tee", "3",
            "--log-dir", str(folder), "--no-python", *worker],
        TORCHRUN: lambda folder, worker: [
            *torchrun, "--standalone", "--nproc_per_node", str(WORKERS), "--tee", "3", "--log_dir", str(folder),
            "--monitor_interval", str(MONITOR_INTERVAL_S), "--no_python", *worker],
    }
    if hydra := tools.peer("mpiexec.hydra"):
        known[HYDRA] = lambda folder, worker: [hydra, "-prepend-rank", "-n", str(WORKERS), *worker]
    return known


def _told(command: list[str]) -> dict:
    return json.loads(tools.run(command, deadline_s=DEADLINE_S).output)


def measure_one(name: str, command_of: Callable[[Path, list[str]], list[str]], lines: int) -> contest.Figures:
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="muster-bench-", dir=memory if memory.is_dir() else None))
    try:
        logs = folder / "logs"
        logs.mkdir()
        worker = [tools.built("test/bench/logs/log_writer"), str(folder), str(lines)]
        command = command_of(logs, worker)
        done = subprocess.run([tools.built("test/bench/logs/read_console"), *command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=DEADLINE_S, check=True)
        console = json.loads(done.stdout)
        if console["exit_code"] != 0:
            sys.exit(f"bench: {' '.join(command)} exited with {console['exit_code']}: {done.stderr[-2000:]}")
        workers = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORKERS)]
        seconds = console["last_s"] - min(worker["start_s"] for worker in workers)
        total, gib = WORKERS * lines, WORKERS * lines * LINE_BYTES / 2**30
        figures = {
            THROUGHPUT.name: gib * 1024 / seconds,
            LINES.name: total / seconds,
            CPU.name: console["cpu_s"] / gib,
            LAUNCHER_CPU.name: (console["cpu_s"] - sum(worker["cpu_s"] for worker in workers)) / gib,
            LOST_ON_CONSOLE.name: total - console["lines"],
        }
        if name != HYDRA:
            files = [str(file) for file in logs.glob("**/stdout.log")]
            figures[LOST_IN_FILES.name] = total - _told([tools.built("test/bench/logs/count_lines"), *files])["lines"]
        return figures
    finally:
        shutil.rmtree(folder)


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark("logs", f"Logs: {WORKERS} workers that write as fast as they can", HOW)
    known = commands()
    if HYDRA not in known:
        benchmark.notes.append(f"{HYDRA} could not be measured: it is not installed")
    lines = (QUICK_WORKER_MIB if settings.quick else WORKER_MIB) * 2**20 // LINE_BYTES
    benchmark.commands = [" ".join([Path(words[0]).name, *words[1:]]) for words in (
        command(Path("LOGS"), ["log_writer", "FOLDER", str(lines)]) for command in known.values())]
    contestants = [contest.Contestant(name, partial(measure_one, name, command, lines))
                   for name, command in known.items()]
    samples = contest.take_turns("logs", contestants, settings.pairs)
    less = (results.Goal(TORCHRUN, times=1),)
    nothing = (results.Goal(limit=0),)
    benchmark.add(f"{WORKERS} workers", ALL, samples, {
        THROUGHPUT.name: (results.Goal(TORCHRUN, times=5),),
        CPU.name: less,
        LAUNCHER_CPU.name: less,
        LOST_ON_CONSOLE.name: nothing,
        LOST_IN_FILES.name: nothing,
    })
    launch_micro.add_rows(benchmark, "test/bench/logs/line_prefixer_benchmark", settings)
    return benchmark
