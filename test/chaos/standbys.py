"""The group "ha": three daemons over an etcd of three members, on three hosts, and a job whose workers must not notice
whatever happens to them.

    ha1 10.78.0.101   etcd, musterd        node1 10.78.0.1   muster run
    ha2 10.78.0.102   etcd, musterd        node2 10.78.0.2   muster run
    ha3 10.78.0.103   etcd, musterd

One fault at a time, of one host or between two: a majority of etcd is always whole. Meanwhile somebody adds to a number
in the job's store, and others (test/linearizability) use the rest of it, over whichever daemon leads.
"""

import contextlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import isolation
from cluster import Cluster, Host
from job import PORT
from marks import Mark, read_marks
from processes import Program, children, now, reap_all, wait_for
from tools import Tools

# Of etcd, on every host.
_CLIENTS, _PEERS = 2379, 2380
# A member's disk; small enough to fill.
_DISK_MIB = 192
# Longer than a leader's lease, an election in etcd and a daemon's start take on a busy machine.
_BACK_WITHIN_S = 30.0
_GOAL_MS = 3000
_CALL_S = 1


@dataclass(frozen=True)
class OwnTools:
    """What only this group needs."""

    clock_jumps: str
    witness: str

    @staticmethod
    def find() -> "OwnTools":
        """From CLOCK_JUMPS and STORE_WITNESS; by default what Bazel has built here."""
        return OwnTools(os.path.abspath(os.environ.get("CLOCK_JUMPS", "bazel-bin/test/chaos/clock_jumps")),
                        os.path.abspath(os.environ.get("STORE_WITNESS",
                                                       "bazel-bin/test/linearizability/store_witness")))

    def missing(self) -> list[str]:
        return [path for path in vars(self).values() if not os.path.exists(path)]


class Site:
    """One host with a member of etcd and a daemon."""

    def __init__(self, number: int, folder: Path, tools: Tools, environment: dict[str, str]):
        self.name = f"ha{number}"
        self.host = Host(self.name, f"10.78.0.{100 + number}")
        self.disk = folder / self.name
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "tmpfs", str(self.disk)], check=True)
        self._tools = tools
        self._environment = environment
        self.etcd: Program
        self.daemon: Program

    def client_url(self) -> str:
        return f"http://{self.host.address}:{_CLIENTS}"

    def peer_url(self) -> str:
        return f"http://{self.host.address}:{_PEERS}"

    def start_etcd(self, sites: list["Site"], under: list[str] | None = None,
                   more: dict[str, str] | None = None) -> None:
        members = ",".join(f"{site.name}={site.peer_url()}" for site in sites)
        self.etcd = self.host.start("etcd", [
            *(under or []), shutil.which("etcd") or "etcd", f"--name={self.name}", f"--data-dir={self.disk}/data",
            f"--listen-client-urls={self.client_url()}", f"--advertise-client-urls={self.client_url()}",
            f"--listen-peer-urls={self.peer_url()}", f"--initial-advertise-peer-urls={self.peer_url()}",
            f"--initial-cluster={members}", "--logger=zap", "--log-level=error",
            # etcd's default from 3.5 on: a returning member does not force a new election.
            "--pre-vote",
            # As docs/standby.md recommends for one network: half of the default.
            "--heartbeat-interval=50", "--election-timeout=500",
        ], {**os.environ, **(more or {})})

    def start_daemon(self, sites: list["Site"], more: dict[str, str] | None = None) -> None:
        state = "etcd://" + ",".join(f"{site.host.address}:{_CLIENTS}" for site in sites) + "/chaos"
        argv = [self._tools.musterd, f"--listen={self.host.address}:{PORT}", f"--state={state}"]
        self.daemon = self.host.start("musterd", argv, {**self._environment, **(more or {})})

    def serving(self) -> int | None:
        """The daemon that its keeper has started."""
        found = children(self.daemon.pid) if self.daemon.running() else []
        return found[0] if found else None


class Counter:
    """Adds to a number in the job's store without a pause, one call after the other, and checks what it hears: what was
    acknowledged is never taken back, and what was not is there once or not at all."""

    def __init__(self, tools: Tools, host: Host, environment: dict[str, str], endpoint: str):
        self._ask = [*host.inside(), tools.muster, "kv"]
        self._where = [f"--rdzv-endpoint={endpoint}", "--rdzv-id=chaos"]
        self._environment = environment
        self.acknowledged = 0
        self.unknown = 0
        self.highest = 0
        self.times: list[int] = []  # Of acknowledgements.
        self.problems: list[str] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()

    def longest_gap_ms(self, since: int) -> float:
        times = [since, *(each for each in list(self.times) if each >= since)]
        return max((later - earlier) / 1e6 for earlier, later in zip(times, times[1:])) if len(times) > 1 else 0.0

    def _run(self) -> None:
        while not self._ends.is_set():
            # A call to a suspended daemon is given up, as only that daemon could answer or refuse
            # it.
            done = subprocess.run(["timeout", str(_CALL_S), *self._ask, "add", "number", "1", *self._where],
                                  env=self._environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                # It may have been executed. A call that writes is never repeated.
                self.unknown += 1
                self._ends.wait(0.02)
                continue
            self.times.append(now())
            self.acknowledged += 1
            value = int(done.stdout)
            if value <= self.highest:
                self.problems.append(f"the number went from {self.highest} to {value}: a write was lost")
            if value < self.acknowledged or value > self.acknowledged + self.unknown:
                self.problems.append(f"the number is {value} after {self.acknowledged} writes that were acknowledged "
                                     f"and {self.unknown} that perhaps were done")
            self.highest = value


class Witness:
    """Uses the job's store by chance, four calls at a time, and judges whether it was linearizable: one history for
    each fault (test/linearizability/witness.h)."""

    def __init__(self, program: str, host: Host, environment: dict[str, str], endpoint: str, seed: int):
        self._process = subprocess.Popen(
            [*host.inside(), program, endpoint, "chaos", environment["MUSTER_TOKEN_FILE"], str(seed)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.calls = 0
        self.unknown = 0

    def judge(self) -> list[str]:
        """Ends a history and begins the next one; what is wrong with it."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        said = self._process.stdout.readline()
        calls, unknown, trouble = (said.rstrip("\n") or "0 0 it died").split(" ", 2)
        self.calls += int(calls)
        self.unknown += int(unknown)
        return [f"the store is not linearizable: {trouble}"] if trouble else []

    def close(self) -> None:
        self._process.communicate()


def _in_touch(agent: Program) -> bool:
    said = [line.text for line in list(agent.lines) if "to the rendezvous" in line.text]
    return not said or "reconnected to the rendezvous" in said[-1]


class Group:
    """All of it. To be closed."""

    def __init__(self, tools: Tools, own: OwnTools, seed: int):
        self.random = random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(dir=isolation.SCRATCH))
        self.cluster = Cluster(2)
        token = self.folder / "token"
        subprocess.run([tools.muster, "token", "new", token], check=True, stdout=subprocess.DEVNULL)
        self.environment = {
            "PATH": os.environ["PATH"], "TMPDIR": str(self.folder), "MUSTER_TOKEN_FILE": str(token),
            "OMP_NUM_THREADS": "1", "CHAOS_FINISH": str(self.folder / "finish"),
        }
        self.tools = tools
        self.own = own
        self.sites = [Site(i, self.folder, tools, self.environment) for i in (1, 2, 3)]
        for site in self.sites:
            site.start_etcd(self.sites)
        for site in self.sites:
            site.start_daemon(self.sites)
        self.endpoint = ",".join(f"{site.host.address}:{PORT}" for site in self.sites)
        self.leader()
        self.agents = [self._start_agent(host) for host in self.cluster.nodes]
        self.workers = wait_for(self._all_workers, lambda: f"no workers: {self.agents[0].last_words()}")
        self.counter = Counter(tools, self.cluster.nodes[0], self.environment, self.endpoint)
        self.witness = Witness(own.witness, self.cluster.nodes[1], self.environment, self.endpoint, seed)

    def _start_agent(self, host: Host) -> Program:
        folder = self.folder / host.name
        folder.mkdir()
        return host.start(host.name, [
            self.tools.muster, "run", "--nnodes=2", "--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=chaos",
            f"--rdzv-endpoint={self.endpoint}", "--log-level=info", "--no-python", self.tools.worker,
        ], {**self.environment, "CHAOS_DIR": str(folder), "CHAOS_TICK_US": "10000"})

    def _marks(self) -> list[Mark]:
        return [mark for host in self.cluster.nodes for mark in read_marks(host.name, self.folder / host.name)]

    def _all_workers(self) -> list[int] | None:
        pids = [mark.pid for mark in self._marks() if mark.alive]
        return pids if len(pids) == 4 else None

    def leader(self) -> Site:
        """Who leads, as etcd says; waits until somebody does."""
        def ask() -> Site | None:
            endpoints = ",".join(site.client_url() for site in self.sites)
            done = subprocess.run(
                [*self.cluster.daemon.inside(), "etcdctl", f"--endpoints={endpoints}", "--command-timeout=2s", "get",
                 "--print-value-only", "/chaos/leader"],
                env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True, check=False)
            return next((site for site in self.sites if done.stdout.startswith(site.name + " ")), None)

        return wait_for(ask, "nobody leads", _BACK_WITHIN_S)

    def check(self, since: int) -> list[str]:
        """Waits until writes are acknowledged again; then what must hold."""
        before = len(self.counter.times)
        problems = []
        try:
            wait_for(lambda: len(self.counter.times) > before + 3, "no write was acknowledged any more", _BACK_WITHIN_S)
            # One fault at a time: the next one comes when the agents have recovered from this one,
            # too.
            wait_for(lambda: all(_in_touch(agent) for agent in self.agents), "an agent does not come back",
                     _BACK_WITHIN_S)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what was found)
            said = "; ".join(f"{site.name}: {site.daemon.last_words()}" for site in self.sites)
            problems.append(f"{error}; {said}")
        problems += self.counter.problems + self.witness.judge()
        if [mark.pid for mark in self._marks() if mark.alive] != self.workers or len(self._marks()) != 4:
            problems.append(f"workers have ended or others were started: {self.agents[0].last_words(6)}")
        return problems

    def close(self) -> list[str]:
        self.counter.close()
        self.witness.close()
        Path(self.environment["CHAOS_FINISH"]).touch()
        problems = []
        for agent in self.agents:
            code = agent.wait()
            if code != 0:
                problems.append(f"{agent.name} exited with {code}: {agent.last_words()}")
        for site in self.sites:
            site.host.remove()
        self.cluster.close()
        for site in self.sites:
            subprocess.run(["umount", "-l", str(site.disk)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        reap_all()
        return problems


# -- faults: each does its harm, lets it last, and mends it.

def _kill(pid: int | None, number: int = signal.SIGKILL) -> None:
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def daemon_killed(group: Group, site: Site) -> None:
    _kill(site.serving())


def daemon_and_keeper_killed(group: Group, site: Site) -> None:
    serving = site.serving()
    _kill(site.daemon.pid)
    _kill(serving)
    site.daemon.wait()
    time.sleep(group.random.uniform(0, 3))
    site.start_daemon(group.sites)


def daemon_stopped(group: Group, site: Site) -> None:
    serving = site.serving()
    _kill(serving, signal.SIGSTOP)
    time.sleep(group.random.uniform(0, 5))
    _kill(serving, signal.SIGCONT)


def daemon_told_to_end(group: Group, site: Site) -> None:
    site.daemon.signal(signal.SIGTERM)
    site.daemon.wait()
    site.start_daemon(group.sites)


def _start_with(group: Group, site: Site, more: dict[str, str]) -> None:
    serving = site.serving()
    _kill(site.daemon.pid)
    _kill(serving)
    site.daemon.wait()
    site.start_daemon(group.sites, more)


def daemons_clock_jumps(group: Group, site: Site) -> None:
    """From now on, every three seconds, until it is started again for another fault."""
    _start_with(group, site, {
        "LD_PRELOAD": group.tools.clock_skew, "SKEW_PERIOD_S": "3", "SKEW_S": str(group.random.choice([3, 60, 3600]))})


def member_killed(group: Group, site: Site) -> None:
    site.etcd.signal(signal.SIGKILL)
    site.etcd.wait()
    time.sleep(group.random.uniform(0, 3))
    site.start_etcd(group.sites)


def members_clock_jumps(group: Group, site: Site) -> None:
    """From now on, every three seconds, until it is started again for another fault."""
    site.etcd.signal(signal.SIGKILL)
    site.etcd.wait()
    site.start_etcd(group.sites, [group.own.clock_jumps],
                    {"SKEW_PERIOD_S": "3", "SKEW_S": str(group.random.choice([3, 60, 3600]))})


def member_stopped(group: Group, site: Site) -> None:
    site.etcd.signal(signal.SIGSTOP)
    time.sleep(group.random.uniform(0, 5))
    site.etcd.signal(signal.SIGCONT)


def members_disk_full(group: Group, site: Site) -> None:
    filler = site.disk / "filler"
    with contextlib.suppress(OSError), open(filler, "wb") as file:
        while True:
            file.write(bytes(1 << 20))
    time.sleep(group.random.uniform(1, 3))
    filler.unlink(missing_ok=True)
    # It exits when it can write no more.
    if not site.etcd.running():
        site.start_etcd(group.sites)


def power_lost(group: Group, site: Site) -> None:
    site.host.lose_power()
    site.etcd.wait()
    site.daemon.wait()
    time.sleep(group.random.uniform(0, 3))
    site.host.plug_cable()
    site.start_etcd(group.sites)
    site.start_daemon(group.sites)


def cable_pulled(group: Group, site: Site) -> None:
    site.host.pull_cable()
    time.sleep(group.random.uniform(0, 5))
    site.host.plug_cable()


def hears_another_no_more(group: Group, site: Site) -> None:
    other = group.random.choice([each for each in group.sites if each is not site])
    site.host.deaf_to(other.host.address)
    time.sleep(group.random.uniform(0, 5))
    site.host.hear_all()


def two_hear_each_other_no_more(group: Group, site: Site) -> None:
    other = group.random.choice([each for each in group.sites if each is not site])
    site.host.deaf_to(other.host.address)
    other.host.deaf_to(site.host.address)
    time.sleep(group.random.uniform(0, 5))
    site.host.hear_all()
    other.host.hear_all()


def hears_no_agents(group: Group, site: Site) -> None:
    for node in group.cluster.nodes:
        site.host.deaf_to(node.address)
    time.sleep(group.random.uniform(0, 4))
    site.host.hear_all()


FAULTS: list[Callable[[Group, Site], None]] = [
    daemon_killed, daemon_and_keeper_killed, daemon_stopped, daemon_told_to_end, daemons_clock_jumps, member_killed,
    member_stopped, members_clock_jumps, members_disk_full, power_lost, cable_pulled, hears_another_no_more,
    two_hear_each_other_no_more, hears_no_agents,
]


def in_words(result: dict) -> str:
    """What a run has found, for docs/faults.md."""
    rows = [f"| {name} | {each['times']} | {each['median'] / 1000:.2f} s | {each['worst'] / 1000:.2f} s |"
            for name, each in result["figures_ms"].items()]
    found = "; ".join(result["problems"]) or (
        "no worker ended, no acknowledged write was lost, and all histories are linearizable")
    summary = (
        f"{result['injections']} faults, these and those at other hosts (seed {result['seed']}): {result['writes']} "
        f"writes of one client were acknowledged and {result['unknown']} were not; four others made {result['calls']} "
        f"calls, and were not told of {result['calls_unknown']} writes whether they were done. Found: {found}. The "
        f"median of all was {result['median_ms'] / 1000:.2f} s, the worst {result['worst_ms'] / 1000:.2f} s; the goal "
        f"is {_GOAL_MS / 1000:g} s.")
    return "\n".join([
        "| what happens at the leader's host | times | median | worst |", "|---|---|---|---|", *rows, "",
        textwrap.fill(summary, 120), ""])


def run(tools: Tools, own: OwnTools, injections: int, seed: int) -> dict:
    """Injects so many faults, two of three into who leads; ends at the first that has an effect it must not have."""
    group = Group(tools, own, seed)
    figures: dict[str, list[float]] = {}
    problems: list[str] = []
    done = 0
    for done in range(1, injections + 1):
        fault = group.random.choice(FAULTS)
        leader = group.leader()
        site = leader if group.random.random() < 2 / 3 else group.random.choice(group.sites)
        begin = now()
        fault(group, site)
        problems = group.check(begin)
        gap = group.counter.longest_gap_ms(begin)
        if gap > _GOAL_MS:
            said = "; ".join(f"{each.name}: " + " / ".join(f"{(line.ns - begin) / 1e6:.0f} ms {line.text[26:110]}"
                             for line in each.daemon.lines if line.ns >= begin) for each in group.sites)
            print(f"      {said}", flush=True)
        if site is leader:
            figures.setdefault(fault.__name__.replace("_", " "), []).append(gap)
        print(f"{done:>5} {fault.__name__} at {site.name}{', who leads' if site is leader else ''}: writes waited "
              f"{gap:.0f} ms{''.join(f'{chr(10)}      {each}' for each in problems)}", flush=True)
        if problems:
            break
    written = group.counter.acknowledged
    unknown = group.counter.unknown
    problems += group.close()
    everything = [each for values in figures.values() for each in values] or [0.0]
    return {
        "seed": seed, "injections": done, "problems": problems, "writes": written, "unknown": unknown,
        "calls": group.witness.calls, "calls_unknown": group.witness.unknown,
        "median_ms": round(statistics.median(everything), 1), "worst_ms": round(max(everything), 1),
        "figures_ms": {name: {"times": len(values), "median": round(statistics.median(values), 1),
                              "worst": round(max(values), 1), "goal": _GOAL_MS}
                       for name, values in sorted(figures.items())},
    }
