"""What it costs that the workers' store goes through a tunnel between agents (--worker-store=tunnel)."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import contest
import results
import store_gloo
import tools

TARGETS = ["//launcher:muster", "//test/bench/store:store_client"]

DIRECT = "direct"
STORES = {results.OURS: "tunnel", DIRECT: "agent"}
RANKS = (2, 8, 32, 128)
VALUE = 8 << 20
HELD = 900

ROUND_TRIPS = (("add", results.Metric("add", "us")), ("get", results.Metric("get", "us")))
THROUGHPUT = (("set", results.Metric("set", "MiB/s", higher_is_better=True)),
              ("get", results.Metric("get", "MiB/s", higher_is_better=True)))
REPLAY = results.Metric("gloo's traffic", "ms")
START = results.Metric("first answer", "ms")
MEMORY = results.Metric("memory per connection", "KiB")

ONE = "one request after the other"
LARGE = f"a value of {VALUE >> 20} MiB"
FIRST = "a connection, and its first add"
IDLE = f"{HELD} idle connections, on both agents together"

HOW = f"""muster is --worker-store=tunnel, direct is --worker-store=agent: the same program, and no peer's. Each round starts
a job of two agents with a worker each, which meet on loopback with a token. The worker with rank 1, whose agent does not have
the store, puts the load on it with a raw client, as in the store's benchmark; the other waits. Through the tunnel a request
goes from the client to its own agent, over TLS to the other agent, there to the store over loopback, and back: both agents
and the client share this machine's processors, and the network between them takes no time. A set of a large value counts
until an add behind it is answered. gloo's traffic is that of so many ranks, all of which are on the second node, with two
connections each: the median of five starts. The first add of a job makes the agents' TLS connection as well, and so is counted apart."""

# Runs as the worker: rank 1 measures, rank 0 stays until it has.
_WORKER = """
import json, os, socket, statistics, struct, subprocess, sys, time
client, out, seconds, value, held, *traces = sys.argv[1:]
port = os.environ["MASTER_PORT"]

def resident():
    agents = [int(pid) for pid in open(out + ".agents").read().split()]
    return sum(int(line.split()[1]) for pid in agents for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS:"))

if os.environ["RANK"] == "0":
    while not os.path.exists(out):
        time.sleep(0.01)
    sys.exit()

def run(*arguments):
    return json.loads(subprocess.run([client, *arguments], check=True, capture_output=True, text=True).stdout)

before = time.perf_counter()
with socket.create_connection((os.environ["MASTER_ADDR"], int(port)), timeout=60) as peer:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(b"\\3" + struct.pack("<Q", 5) + b"init/" + struct.pack("<q", 1))
    assert len(peer.recv(8)) == 8
    figures = {"first_ms": (time.perf_counter() - before) * 1000}
# Before anything has allocated memory that would be reused.
before = resident()
with subprocess.Popen([client, "hold", port, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    process.stdout.readline()
    figures["held_kib"] = max(0, resident() - before) / int(held)
figures.update(run("one-by-one", port, seconds, value, "5"))
figures["replay"] = {ranks: statistics.median(run("replay", port, trace)["ms"] for _ in range(5))
                     for ranks, trace in (each.split("=") for each in traces)}
with open(out + ".new", "w") as file:
    json.dump(figures, file)
os.rename(out + ".new", out)
"""


def _load(store: str, seconds: float, traces: dict[int, Path]) -> contest.Figures:
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        out, worker = Path(folder) / "figures", Path(folder) / "worker.py"
        worker.write_text(_WORKER)
        port = _free_port()
        command = [tools.built("launcher/muster"), "run", "--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{port}",
                   f"--worker-store={store}", "--no-python", tools.PYTHON, str(worker),
                   tools.built("test/bench/store/store_client"), str(out), str(seconds), str(VALUE), str(HELD),
                   *(f"{ranks}={trace}" for ranks, trace in traces.items())]
        variables = {**os.environ, "XDG_CONFIG_HOME": folder, "TMPDIR": folder}
        agents = [subprocess.Popen([*command[:2], f"--node-rank={rank}", *command[2:]], env=variables,
                                   stdin=subprocess.DEVNULL) for rank in range(2)]
        Path(f"{out}.agents").write_text(" ".join(str(agent.pid) for agent in agents))
        for agent in agents:
            if agent.wait(timeout=600) != 0:
                sys.exit(f"bench: a job with --worker-store={store} exited with {agent.returncode}")
        found = json.loads(out.read_text())
    figures = {f"{FIRST}/{START.name}": found["first_ms"], f"{IDLE}/{MEMORY.name}": found["held_kib"]}
    figures.update({f"{ONE}/{metric.name}": found[f"{op}_us"] for op, metric in ROUND_TRIPS})
    figures.update({f"{LARGE}/{metric.name}": found[f"{op}_mib_s"] for op, metric in THROUGHPUT})
    figures.update({f"{_ranks(ranks)}/{REPLAY.name}": found["replay"][str(ranks)] for ranks in traces})
    return figures


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _ranks(ranks: int) -> str:
    return f"{ranks} ranks start with gloo"


def _case(samples: contest.Samples, case: str) -> contest.Samples:
    return {name: {metric.removeprefix(f"{case}/"): figures for metric, figures in metrics.items()
                   if metric.startswith(f"{case}/")} for name, metrics in samples.items()}


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark("tunnel", "Store: through a tunnel, and directly", HOW, commands=[
        "muster run --nnodes=2 --rdzv-endpoint=127.0.0.1:PORT --worker-store=tunnel|agent ...",
        f"store_client one-by-one PORT SECONDS {VALUE} 5", "store_client replay PORT TRACE",
        f"store_client hold PORT {HELD}"])
    sizes = RANKS[:2] if settings.quick else RANKS
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        traces = {ranks: Path(folder) / str(ranks) for ranks in sizes}
        for ranks, trace in traces.items():
            store_gloo.write(ranks, trace)
        samples = contest.take_turns("tunnel", [
            contest.Contestant(name, lambda store=store: _load(store, 0.3 if settings.quick else 2.0, traces))
            for name, store in STORES.items()
        ], settings.pairs)
    benchmark.add(FIRST, [START], _case(samples, FIRST))
    benchmark.add(ONE, [metric for _, metric in ROUND_TRIPS], _case(samples, ONE))
    benchmark.add(LARGE, [metric for _, metric in THROUGHPUT], _case(samples, LARGE))
    for ranks in sizes:
        benchmark.add(_ranks(ranks), [REPLAY], _case(samples, _ranks(ranks)), size=ranks)
    benchmark.add(IDLE, [MEMORY], _case(samples, IDLE))
    return benchmark
