"""What a job of ten thousand nodes asks of one daemon, beside one of a thousand."""

import functools
import json
import os
from pathlib import Path

import contest
import results
import tools

TARGETS = ["//launcher:muster", "//rendezvous:musterd", "//test/bench/daemon:fleet_load"]

PLAINTEXT = "muster --insecure"
SIZES = (1_000, 10_000)
HOSTS = 200
SECONDS = 10
# No turn of the loop may take longer, in seconds as the metric's bucket is named.
LONGEST = "0.01"

GATHERING = results.Metric("all but one attend", "s")
GATHERING_CPU = results.Metric("all but one attend, the daemon's CPU per agent", "ms")
LAST_JOIN = results.Metric("last join to all assigned", "ms")
RESTART = results.Metric("one fails, to all assigned again", "ms")
BACK = results.Metric("daemon killed, to all back", "s")
MEMORY = results.Metric("memory per agent, resident", "KiB")
CPU = results.Metric("CPU in peace", "% of a core")
BEAT_P50 = results.Metric("a beat's answer, median", "ms")
BEAT_P99 = results.Metric("a beat's answer, p99", "ms")
TURNS = results.Metric("turns of the loop of more than 10 ms, of a million", "")
METRICS = [GATHERING, GATHERING_CPU, LAST_JOIN, RESTART, BACK, MEMORY, CPU, BEAT_P50, BEAT_P99, TURNS]

HOW = f"""The agents of one job, each the client that `muster run` uses with a session and a connection of its own,
all in one process, which come to a fresh musterd from {HOSTS} addresses (in a network namespace). All but one join, 300
at a time on their way, as client and daemon share the machine; then the last one, and the time runs until all hold
their Assignment. For {SECONDS} s each beats once a second. Then a worker of one fails: all are told to stop, join
again, and hold the next round's Assignment. In a run of its own, with a state directory, the daemon is killed after
that: its keeper starts another, which reads what is remembered, and all come back to their sessions. A turn of the
loop is one handler; while it runs nobody is heard. CPU is the daemon's."""


def _run(secure: bool, agents: int, seconds: float) -> contest.Figures:
    here = Path(__file__).parent.parent

    def once(*how: str) -> dict:
        command = [str(here / "many_hosts.sh"), tools.PYTHON, str(here / "fleet_once.py"), str(agents), str(HOSTS),
                   str(seconds), *how]
        return json.loads(tools.run(command).output)

    kind = ["secure"] if secure else []
    told, killed = once(*kind), once(*kind, "kill")
    turns = told["turns"]
    return {
        GATHERING.name: told["gathering_s"], GATHERING_CPU.name: told["gathering_cpu_s"] * 1e3 / agents,
        LAST_JOIN.name: told["last_join_s"] * 1e3, RESTART.name: told["restart_s"] * 1e3, BACK.name: killed["back_s"],
        MEMORY.name: told["memory_kib"], CPU.name: 100 * told["peace_cpu"], BEAT_P50.name: told["beat_p50_ms"],
        BEAT_P99.name: told["beat_p99_ms"], TURNS.name: 1e6 * (turns["+Inf"] - turns[LONGEST]) / turns["+Inf"],
    }


def measure(settings: tools.Settings) -> results.Benchmark:
    sizes, seconds = ((100, 200), 2) if settings.quick else (SIZES, SECONDS)
    benchmark = results.Benchmark(
        "fleet", "A daemon with ten thousand agents", HOW,
        ["scripts/bench/many_hosts.sh python3 scripts/bench/fleet_once.py AGENTS 200 10 [secure] [kill|stand-by]"])
    if os.geteuid() != 0:
        benchmark.notes.append("not root: there are no addresses to come from, and it was not run")
        return benchmark
    for agents in sizes:
        contestants = [contest.Contestant(name, functools.partial(_run, secure, agents, seconds))
                       for name, secure in ((results.OURS, True), (PLAINTEXT, False))]
        samples = contest.take_turns(f"{agents} agents", contestants, settings.pairs, warm_up=0)
        benchmark.add(f"{agents} agents", METRICS, samples, size=agents)
    return benchmark
