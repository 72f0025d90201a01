"""How long N agents take to come together, over gRPC and in one process, and what each of them costs."""

import functools
import itertools
import json
import subprocess
from pathlib import Path

import contest
import daemon_servers
import rendezvous_micro
import results
import tools

TARGETS = ["//launcher:muster", "//rendezvous:musterd", "//test/bench/rendezvous:rendezvous_load",
           "//test/bench/rendezvous:core_benchmark"]

TORCH = "torch"
PLAINTEXT = "muster --insecure"
SIZES = (2, 8, 64, 256, 1024)
TORCH_SIZES = (2, 8, 64)
IN_PROCESS_SIZES = (2, 8, 64, 256, 1024, 10_000)
# Sizes at which the peer's growth is checked, and the time limit for it.
TORCH_BEYOND = 256
TORCH_PATIENCE_S = 60

LAST_JOIN = results.Metric("last join to all assigned", "ms")
COST = results.Metric("last join, per agent", "us")
WHOLE = results.Metric("first join to all assigned", "ms")
WHOLE_COST = results.Metric("whole, per agent", "us")
METRICS = [LAST_JOIN, COST, WHOLE, WHOLE_COST]
IN_PROCESS = [results.Metric(f"{metric.name}, in one process", metric.unit) for metric in METRICS]
GROWTH = results.Metric("cost per agent, times", "")
# "Flat": sorting and caches may make an agent of a large job up to this many times as expensive.
FLAT = 2

HOW = """All nodes of a job but one have joined; the time runs from before the last one calls Join until the last agent
holds its Assignment. "First join to all assigned" is that and the time until the others had joined, their connections
included. Muster: every agent is the client that `muster run` uses, with a gRPC session and a connection of its own
over loopback, all in one process with one loop, against a musterd that logs to a file and keeps no journal. Each
connection is TLS 1.3 with certificates of its own on both ends, or in plaintext with --insecure; "in one
process" are the same decisions without wire and socket, through the client of an agent that is host to its own
rendezvous. torch: DynamicRendezvousHandler of PyTorch 1.13.1 over its TCPStore, made as torchrun makes it, one for
each node in threads of one Python process; min_nodes is max_nodes, so that it waits for no last call, and nothing
else can be set. Its nodes look once a second whether they are complete, and each change is a compare-and-set of the
whole state, for which the threads also share one interpreter lock."""


def _figures(metrics: list[results.Metric], output: str) -> contest.Figures:
    told = json.loads(output)
    last, whole = told["last_join_s"], told["gathering_s"] + told["last_join_s"]
    values = (last * 1e3, last * 1e6 / told["agents"], whole * 1e3, whole * 1e6 / told["agents"])
    return {metric.name: value for metric, value in zip(metrics, values)}


def _load(*arguments: str) -> str:
    return tools.run([tools.built("test/bench/rendezvous/rendezvous_load"), *arguments]).output


def _torch_command(nodes: int) -> list[str]:
    return [tools.PYTHON, str(Path(__file__).parent.parent / "rendezvous_torch.py"), str(nodes)]


def _over_grpc(benchmark: results.Benchmark, nodes: int, settings: tools.Settings, with_torch: bool) -> None:
    runs = itertools.count()
    with daemon_servers.musterd() as secure, daemon_servers.musterd(secure=False) as plain:
        contestants = [contest.Contestant(name, functools.partial(lambda daemon: _figures(METRICS, _load(
            *daemon.flags(), f"--agents={nodes}", f"--run-id=bench-{next(runs)}")), daemon))
            for name, daemon in ((results.OURS, secure), (PLAINTEXT, plain))]
        if with_torch:
            contestants.append(contest.Contestant(
                TORCH, lambda: _figures(METRICS, tools.run(_torch_command(nodes)).output)))
        samples = contest.take_turns(f"rendezvous of {nodes}", contestants, settings.pairs)
    goals = {64: (results.Goal(TORCH, times=50),), 1024: (results.Goal(limit=1000),)}
    benchmark.add(f"{nodes} agents", METRICS, samples, {LAST_JOIN.name: goals.get(nodes, ())}, size=nodes)


def _in_process(benchmark: results.Benchmark, nodes: int, settings: tools.Settings) -> None:
    ours = contest.Contestant(results.OURS, lambda: _figures(IN_PROCESS, _load(f"--agents={nodes}")))
    samples = contest.take_turns(f"rendezvous of {nodes} in one process", [ours], settings.pairs)
    goals = {10_000: (results.Goal(limit=5000),)}
    benchmark.add(f"{nodes} agents", IN_PROCESS, samples, {IN_PROCESS[0].name: goals.get(nodes, ())}, size=nodes)


def _add_growth(benchmark: results.Benchmark, cost: results.Metric, small: int, large: int) -> None:
    """What an agent of the large job costs, compared with one of the small job."""
    samples = {row.size: row.samples[results.OURS] for row in benchmark.rows if row.metric == cost}
    if small not in samples or large not in samples:
        return
    growth = [more / less for less, more in zip(samples[small], samples[large])]
    benchmark.add(f"{cost.name}: {large} agents against {small}", [GROWTH], {results.OURS: {GROWTH.name: growth}},
                  {GROWTH.name: (results.Goal(limit=FLAT),)})


def _torch_beyond() -> str:
    """Whether the peer gets further, as a note."""
    try:
        done = subprocess.run(_torch_command(TORCH_BEYOND), capture_output=True, text=True, timeout=TORCH_PATIENCE_S,
                              check=True)
    except subprocess.TimeoutExpired:
        return (f"torch: {TORCH_BEYOND} handlers in one process had not come together after {TORCH_PATIENCE_S} s, so "
                f"it is measured up to {TORCH_SIZES[-1]}.")
    figures = _figures(METRICS, done.stdout)
    return f"torch, {TORCH_BEYOND} handlers, once: {figures[LAST_JOIN.name]:.0f} ms from the last join to all assigned."


def measure(settings: tools.Settings) -> results.Benchmark:
    daemon_servers.allow_descriptors()
    benchmark = results.Benchmark(
        "rendezvous", "Rendezvous: how long N agents take to come together", HOW,
        ["musterd --listen=127.0.0.1:0 --token-file=FILE | --insecure",
         "test/bench/rendezvous/rendezvous_load --endpoint=HOST:PORT --token-file=FILE --agents=N",
         "test/bench/rendezvous/rendezvous_load --agents=N", "python3 scripts/bench/rendezvous_torch.py N"],
        plots=[results.Plot("From the last join to all assigned, for each agent", COST.name, "agents"),
               results.Plot("From the first join to all assigned, for each agent", WHOLE_COST.name, "agents"),
               results.Plot("In one process, from the last join", IN_PROCESS[1].name, "agents"),
               results.Plot("In one process, from the first join", IN_PROCESS[3].name, "agents")])
    for nodes in SIZES[:3] if settings.quick else SIZES:
        _over_grpc(benchmark, nodes, settings, with_torch=nodes in TORCH_SIZES)
    for nodes in IN_PROCESS_SIZES[:4] if settings.quick else IN_PROCESS_SIZES:
        _in_process(benchmark, nodes, settings)
    for cost in (METRICS[1], METRICS[3]):
        _add_growth(benchmark, cost, 64, 1024)
    for cost in (IN_PROCESS[1], IN_PROCESS[3]):
        _add_growth(benchmark, cost, 64, 10_000)
    rendezvous_micro.add_rows(benchmark, "test/bench/rendezvous/core_benchmark", settings)
    benchmark.notes.append("core_benchmark is Google Benchmark's, of the Coordinator alone: each node's part of a "
                           "first round (BM_JoinStorm; BM_ScatteredJoinStorm: not in the order of their addresses) or "
                           "of a round after a failure (BM_Restart), and one beat.")
    if not settings.quick:
        benchmark.notes.append(_torch_beyond())
    return benchmark
