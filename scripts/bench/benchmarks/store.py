"""The workers' store: c10d's TCPStore protocol, served by Muster and by PyTorch itself."""

import contextlib
import json
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import contest
import results
import store_gloo
import store_servers
import tools

TARGETS = ["//launcher:muster", "//test/bench/store:store_client", "//test/bench/store:c10d_client",
           "//test/bench/store:codec_bench", "//test/bench/store:key_value_store_bench"]

TORCH = store_servers.TORCH
IDLE = 900
WAITERS = 1000
FAN_OUTS = 5
RANKS = (2, 4, 8, 16, 32, 64, 128)
CHECKED_RANKS = (2, 4)
MICRO = ("codec_bench", "key_value_store_bench")

OPS = ("add", "set", "get")
RATES = {op: results.Metric(f"{op}s in a second", "/s", higher_is_better=True) for op in OPS}
FAN_OUT = results.Metric("until all are told", "ms")
MEMORY = results.Metric("memory per connection", "KiB")
REPLAY = results.Metric("gloo's traffic", "ms")

ONE = "c10d's client, alone"
CROWDED = f"c10d's client beside {IDLE} idle connections"
PIPELINED = "pipelined"
RELEASED = f"{WAITERS} wait, one sets"
HELD = f"{IDLE} idle connections"

HOW = f"""Each round starts a fresh server, `muster store` or PyTorch 1.13.1's TCPStore in a Python process that does nothing
else, and puts the same load on it over loopback. c10d's client is LibTorch 1.13.1's c10d::TCPStore in a C++ program, one
request after the other: an add is one round trip; a set is not answered, so an add follows, and the pair counts as one; a
get waits for the key first, which are two. The idle connections have each asked once and then stay. Their memory is the
growth of the server's resident memory by their coming. Pipelined is a raw client with up to 8 x 512 requests on their way;
sets and gets go over 512 keys with values of 32 bytes. {WAITERS} connections wait for one key: the time runs from before
another one sets it until the last of the {WAITERS} has the answer in its socket, the median of {FAN_OUTS}; the client looks every
50 us and does not sleep, so that what it costs to wake it up is not counted. gloo's traffic is what the ranks of
init_process_group ask the store for, made by scripts/bench/store_gloo.py, which before the contest lets {CHECKED_RANKS[0]} and
{CHECKED_RANKS[-1]} real ranks of PyTorch start through a recorder and exits if they send anything else; a raw client plays all ranks in
one thread, each with its own connections and one request at a time, and without the pauses of 10 ms in which the real ones
poll their barrier. Nothing can be set for PyTorch's server."""


def _client(*arguments: object) -> dict:
    command = [tools.built("test/bench/store/store_client"), *map(str, arguments)]
    return json.loads(tools.run(command).output)


def _c10d(port: int, seconds: float) -> dict[str, float]:
    return json.loads(tools.run([tools.built("test/bench/store/c10d_client"), str(port), str(seconds)]).output)


@contextlib.contextmanager
def _held(port: int) -> Iterator[None]:
    """IDLE connections, all of which are there; they end when the client's input does, with the context."""
    command = [tools.built("test/bench/store/store_client"), "hold", str(port), str(IDLE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert json.loads(process.stdout.readline()) == {"connections": IDLE}
        yield


def _load(name: str, seconds: float, traces: dict[int, Path]) -> contest.Figures:
    """Everything, by "CASE/METRIC"."""
    figures: contest.Figures = {}

    def note(case: str, rates: dict[str, float]) -> None:
        figures.update({f"{case}/{RATES[op].name}": rates[op] for op in OPS})

    with store_servers.serve(name) as server:
        note(ONE, _c10d(server.port, seconds))
        note(PIPELINED, _client("pipeline", server.port, seconds))
        before = server.resident_kib()
        with _held(server.port):
            figures[f"{HELD}/{MEMORY.name}"] = max(0, server.resident_kib() - before) / IDLE
            note(CROWDED, _c10d(server.port, seconds))
        released = _client("fan-out", server.port, WAITERS, FAN_OUTS)
        figures[f"{RELEASED}/{FAN_OUT.name}"] = statistics.median(released["ms"])
    for ranks, trace in traces.items():
        with store_servers.serve(name) as server:  # A job's store is its own.
            figures[f"{_ranks(ranks)}/{REPLAY.name}"] = _client("replay", server.port, trace)["ms"]
    return figures


def _ranks(ranks: int) -> str:
    return f"{ranks} ranks start with gloo"


def _case(samples: contest.Samples, case: str) -> contest.Samples:
    return {name: {metric.removeprefix(f"{case}/"): figures for metric, figures in metrics.items()
                   if metric.startswith(f"{case}/")} for name, metrics in samples.items()}


def _micro(benchmark: results.Benchmark, binary: str, settings: tools.Settings) -> None:
    """Rows of a Google Benchmark binary: of each item, as it calls them."""
    seconds = 0.02 if settings.quick else 0.2
    command = [tools.built(f"test/bench/store/{binary}"), "--benchmark_format=json", f"--benchmark_min_time={seconds}",
               f"--benchmark_repetitions={settings.pairs}", "--benchmark_display_aggregates_only=false"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    samples: dict[str, list[float]] = {}
    for entry in json.loads(done.stdout)["benchmarks"]:
        if entry["run_type"] == "iteration":
            samples.setdefault(entry["run_name"], []).append(1e9 / entry["items_per_second"])
    for name, figures in samples.items():
        benchmark.add(f"{binary}: {name}", [results.Metric("each", "ns")], {results.OURS: {"each": figures}})


def measure(settings: tools.Settings) -> results.Benchmark:
    benchmark = results.Benchmark("store", "Store: c10d's TCPStore, ours and PyTorch's own", HOW, commands=[
        "muster store --port=0 --ready-fd=3", "c10d_client PORT SECONDS", "store_client pipeline PORT SECONDS",
        f"store_client hold PORT {IDLE}", f"store_client fan-out PORT {WAITERS} {FAN_OUTS}",
        "store_client replay PORT FILE"])
    store_servers.allow_descriptors()
    sizes = RANKS[:3] if settings.quick else RANKS
    seconds = 0.05 if settings.quick else 0.5
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        with store_servers.serve(results.OURS) as server:
            store_gloo.check(CHECKED_RANKS[0], server.port)
        with store_servers.serve(results.OURS) as server:
            store_gloo.check(CHECKED_RANKS[-1], server.port)
        traces = {ranks: Path(folder) / str(ranks) for ranks in sizes}
        requests = {ranks: store_gloo.write(ranks, trace) for ranks, trace in traces.items()}
        samples = contest.take_turns("store", [
            contest.Contestant(name, lambda name=name: _load(name, seconds, traces)) for name in (results.OURS, TORCH)
        ], settings.pairs)

    for case, times in ((ONE, 1), (CROWDED, 8), (PIPELINED, 3)):
        goals = {metric.name: (results.Goal(TORCH, times=times),) for metric in RATES.values()}
        benchmark.add(case, list(RATES.values()), _case(samples, case), goals)
    benchmark.add(RELEASED, [FAN_OUT], _case(samples, RELEASED), {FAN_OUT.name: (results.Goal(limit=10),)})
    benchmark.add(HELD, [MEMORY], _case(samples, HELD), {MEMORY.name: (results.Goal(limit=8),)})
    for ranks in sizes:
        benchmark.add(_ranks(ranks), [REPLAY], _case(samples, _ranks(ranks)), size=ranks)
    benchmark.plots.append(results.Plot("What the store takes for gloo's start", REPLAY.name, "ranks"))
    benchmark.notes.append("gloo's start in requests: " + ", ".join(
        f"{count:,} of {ranks} ranks" for ranks, count in requests.items()) + ".")
    for binary in MICRO:
        _micro(benchmark, binary, settings)
    benchmark.notes.append("codec_bench and key_value_store_bench are Google Benchmark's, of Muster's parts alone; what "
                           "counts as one item their sources say.")
    return benchmark
