"""From a SIGKILL until everybody knows, and until the next round's workers run."""

import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import contest
import results
import tools

sys.path.append(str(Path(__file__).resolve().parents[3] / "test/chaos"))
from marks import Mark, read_marks  # noqa: E402
from processes import Program, TimedOut, stat_fields, wait_for  # noqa: E402

TARGETS = ["//launcher:muster", "//test/chaos:chaos_worker"]

# torchrun's polling interval in seconds, by the contestant's name: nearly none, which is a busy
# loop of Python, and the default of newer versions (1.13's is 5 s).
MONITOR_INTERVALS = {"torchrun": 0.001, "torchrun, 0.1 s": 0.1}
TORCHRUN = next(iter(MONITOR_INTERVALS))
NODES = ("host", "guest")  # The first holds the rendezvous, in Muster's agent as in torchrun's.
NPROC = 2
# How long a survivor has to notice that an agent is dead.
PATIENCE_S = 20.0

AT_REST = results.Metric("CPU time of both agents before", "%")  # of one processor
AGENT_TOLD = results.Metric("its agent knows", "ms")
OTHER_TOLD = results.Metric("the other node knows", "ms")
RUNNING = results.Metric("all new workers run", "ms")
SURVIVOR_TOLD = results.Metric("the survivor knows", "ms")
SURVIVOR_RUNNING = results.Metric("the survivor's new workers run", "ms")

HOW = f"""A job of 2 nodes with {NPROC} workers each; both agents on this machine, over loopback, the first of them holding
the rendezvous, as torchrun's c10d rendezvous does. The workers are the fault harness's (test/chaos/chaos_worker.cc): each
stores CLOCK_MONOTONIC in a mapped file every tenth of a millisecond, so that the instants of its first instruction and of
its end are known. A second or two after all four run, at a random instant, a worker of the second node is killed with
SIGKILL, or that node's agent. An agent knows when the first of its other workers has ended, since it ends them when it
knows; new workers run when the last of the next round has begun. So both are measured from outside, in the same way.
torchrun is as fast as its flags make it: the shortest keep-alive and last call, and a --monitor_interval of
{MONITOR_INTERVALS[TORCHRUN]:g} s; as that is a busy loop, it takes part with 0.1 s, too, the default of newer versions, and the processor time
of both agents while nothing happens is shown. That it looks at the rendezvous once a second cannot be set. Muster has its
defaults."""


# Returns a node's command line for its name, the rendezvous's port, and the job's folder.
CommandOf = Callable[[str, int, Path], list[str]]


class Job:
    """Two agents and their workers, all of which run once it is made. To be closed."""

    def __init__(self, command_of: CommandOf):
        self.folder = Path(tempfile.mkdtemp(prefix="muster-bench-"))
        self.agents: dict[str, Program] = {}
        try:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            for node in NODES:
                self._start(node, command_of(node, port, self.folder), port)
            self.first = self.wait_running(since=0, agents=NODES)
        except BaseException:
            self.close()
            raise

    def marks(self, node: str) -> list[Mark]:
        return read_marks(node, self.folder / node)

    def wait_running(self, since: int, agents: Sequence[str]) -> list[Mark]:
        """All workers of `agents` that began after `since`, once all ranks of their world run."""
        def running() -> list[Mark] | None:
            marks = [mark for node in agents for mark in self.marks(node) if mark.first_ns > since and mark.alive]
            worlds = {mark.world_size for mark in marks}
            whole = worlds == {NPROC * len(agents)} and {mark.rank for mark in marks} == set(range(*worlds))
            return marks if whole else None

        return wait_for(running, self._last_words)

    def wait_ended(self, node: str, but: int = 0, seconds: float = PATIENCE_S) -> int:
        """When the first of the node's first workers, pid `but` aside, had ended."""
        old = {mark.pid for mark in self.first if mark.agent == node and mark.pid != but}
        return wait_for(
            lambda: min((mark.last_ns for mark in self.marks(node) if mark.pid in old and not mark.alive), default=None),
            lambda: f"no worker of {node} has ended; {self._last_words()}", seconds)

    def rest(self) -> float:
        """Lets the job run, so that a kill meets whatever somebody does periodically at any place of the period. Returns
        the share of a processor's time that the agents took."""
        begin, before = time.monotonic(), self._agents_cpu_s()
        time.sleep(random.uniform(1, 2))
        return (self._agents_cpu_s() - before) / (time.monotonic() - begin)

    def close(self) -> None:
        """Ends everything, also workers that a killed agent has left."""
        (self.folder / "finish").touch()
        for agent in self.agents.values():
            if agent.running():
                agent.signal(signal.SIGKILL)
            agent.wait()
        wait_for(lambda: not any(mark.alive for node in self.agents for mark in self.marks(node)),
                 "workers live on after they were told to end")
        shutil.rmtree(self.folder)

    def _start(self, node: str, command: list[str], port: int) -> None:
        folder = self.folder / node
        folder.mkdir()
        self.agents[node] = Program(node, command, {
            **os.environ, "TMPDIR": str(self.folder), "OMP_NUM_THREADS": "1", "CHAOS_DIR": str(folder),
            "CHAOS_FINISH": str(self.folder / "finish")})
        if node == NODES[0]:
            wait_for(lambda: _listens(port), lambda: f"nobody listens on port {port}; {self._last_words()}")

    def _agents_cpu_s(self) -> float:
        ticks = 0
        for agent in self.agents.values():
            fields = stat_fields(agent.pid)
            ticks += sum(map(int, fields[11:13])) if fields else 0  # utime and stime, see proc(5)
        return ticks / os.sysconf("SC_CLK_TCK")

    def _last_words(self) -> str:
        return "; ".join(f"{name}: {agent.last_words(1)}" for name, agent in self.agents.items())


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def _muster(nnodes: str) -> CommandOf:
    return lambda node, port, folder: [
        tools.built("launcher/muster"), "run", f"--nnodes={nnodes}", f"--nproc-per-node={NPROC}", "--max-restarts=3",
        "--rdzv-id=bench", f"--rdzv-endpoint=127.0.0.1:{port}", "--no-python", tools.built("test/chaos/chaos_worker")]


def _torchrun(nnodes: str, monitor_interval_s: float) -> CommandOf:
    def command(node: str, port: int, folder: Path) -> list[str]:
        conf = f"is_host={int(node == NODES[0])},last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=1"
        return [*tools.TORCHRUN, f"--nnodes={nnodes}", f"--nproc_per_node={NPROC}", "--max_restarts=3",
                f"--monitor_interval={monitor_interval_s}", "--rdzv_backend=c10d", "--rdzv_id=bench",
                f"--rdzv_endpoint=127.0.0.1:{port}", f"--rdzv_conf={conf}", f"--log_dir={folder}", "--no_python",
                tools.built("test/chaos/chaos_worker")]
    return command


def _ms(begin: int, end: int) -> float:
    return (end - begin) / 1e6


def _kill_worker(command_of: CommandOf) -> contest.Figures:
    job = Job(command_of)
    try:
        at_rest = job.rest()
        other, node = NODES
        victim = next(mark.pid for mark in job.first if mark.agent == node)
        begin = time.monotonic_ns()
        os.kill(victim, signal.SIGKILL)
        return {
            AT_REST.name: 100 * at_rest,
            AGENT_TOLD.name: _ms(begin, job.wait_ended(node, but=victim)),
            OTHER_TOLD.name: _ms(begin, job.wait_ended(other)),
            RUNNING.name: _ms(begin, max(mark.first_ns for mark in job.wait_running(begin, NODES))),
        }
    finally:
        job.close()


def _kill_agent(command_of: CommandOf) -> contest.Figures:
    job = Job(command_of)
    try:
        job.rest()
        survivor, node = NODES
        begin = job.agents[node].signal(signal.SIGKILL)
        try:
            told = job.wait_ended(survivor)
        except TimedOut:
            return {}
        new = job.wait_running(begin, [survivor])
        return {SURVIVOR_TOLD.name: _ms(begin, told),
                SURVIVOR_RUNNING.name: _ms(begin, max(mark.first_ns for mark in new))}
    finally:
        job.close()


def _contestants(kill: Callable[[CommandOf], contest.Figures], nnodes: str, intervals: dict[str, float],
                 rounds: int = 0) -> list[contest.Contestant]:
    def contestant(name: str, command_of: CommandOf, most: int = 0) -> contest.Contestant:
        return contest.Contestant(name, lambda: kill(command_of), most)

    return [contestant(results.OURS, _muster(nnodes)),
            *(contestant(name, _torchrun(nnodes, interval), rounds) for name, interval in intervals.items())]


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark("failure", "Failure: from a kill to the next round", HOW)
    for command_of in (_muster("2"), _torchrun("2", MONITOR_INTERVALS[TORCHRUN])):
        command = " ".join(command_of(NODES[0], 29400, Path("DIR")))
        benchmark.commands.append(command.replace(str(Path.cwd()) + "/", ""))

    case = "a worker is killed"
    samples = contest.take_turns(case, _contestants(_kill_worker, "2", MONITOR_INTERVALS), settings.pairs)
    told = [AGENT_TOLD, OTHER_TOLD, RUNNING]
    goals = {metric.name: tuple(results.Goal(name, times=20) for name in MONITOR_INTERVALS) for metric in told}
    benchmark.add(case, [*told, AT_REST], samples, goals)

    # torchrun's rounds take as long as our patience, and all end in the same way.
    case = "an agent is killed"
    fastest = {TORCHRUN: MONITOR_INTERVALS[TORCHRUN]}
    samples = contest.take_turns(case, _contestants(_kill_agent, "1:2", fastest, rounds=1), settings.pairs)
    benchmark.add(case, [SURVIVOR_TOLD, SURVIVOR_RUNNING], samples)
    if not samples[TORCHRUN]:
        benchmark.notes.append(f"torchrun's survivors do not learn that an agent is dead: in {PATIENCE_S:g} s they did "
                               "not, and the workers of the dead agent lived on.")
    return benchmark
