"""What a musterd with a thousand agents costs, and how fast its journal is."""

import contextlib
import functools
import json
import tempfile
import time
from pathlib import Path

import contest
import daemon_servers
import rendezvous_micro
import results
import tools

TARGETS = ["//launcher:muster", "//rendezvous:musterd", "//test/bench/daemon:daemon_load",
           "//test/bench/daemon:put_load", "//test/bench/daemon:journal_benchmark"]

ETCD = "etcd"
OVER_ETCD = "muster --state=etcd"
PLAINTEXT = "muster --insecure"
AGENTS = 1000
SECONDS = 10
WRITERS = (1, 8, 64)

CPU = results.Metric("CPU", "% of a core")
RSS = results.Metric("memory per agent, resident", "KiB")
PSS = results.Metric("memory per agent, proportional", "KiB")
BEAT_P50 = results.Metric("a beat's answer, median", "us")
BEAT_P99 = results.Metric("a beat's answer, p99", "us")
COMMITS = results.Metric("commits in a second", "/s", higher_is_better=True)
COMMIT_TIME = results.Metric("a commit's answer, median", "us")
ROUND = results.Metric("a run of one node", "ms")

HOW = f"""{AGENTS} agents of one job attend a fresh musterd, each the client that `muster run` uses with a gRPC session
and a connection of its own over loopback, TLS 1.3 or with --insecure plaintext, all in one process; the job runs, and each agent beats once a
second. CPU is the daemon's user and system time over {SECONDS} s of that; memory is the growth of its resident and of
its proportional set (smaps_rollup) from before the first agent came to the end of that time, divided by their number;
a beat's answer takes from when the agent hands the beat to gRPC until its loop takes the answer. The agents come
within a second or two, so their beats come in bunches, and both processes share the machine. Commits: writers each
put a value of 100 bytes over gRPC, the next as soon as the last is acknowledged, which is when it is on disk (fsync):
into the store of a musterd with --state-dir, and with the same program into an etcd of one node with its defaults,
over its own gRPC API, both in plaintext. Both are on the same disk, begin empty, and are idle while the other is measured; each writer
has a connection of its own, and writes the same 100 keys again and again. "muster --state=etcd" is a musterd that keeps its
jobs in a second such etcd, on the same disk. A run of one node is the whole of `muster run --rdzv-endpoint=...
--no-python true` at each of the two musterds: what is told in its round is remembered first."""


def _attend(secure: bool, seconds: float, agents: int) -> contest.Figures:
    with daemon_servers.musterd(secure=secure) as daemon:
        told = json.loads(tools.run([tools.built("test/bench/daemon/daemon_load"), *daemon.flags(),
                                     f"--daemon-pid={daemon.pid}", f"--agents={agents}",
                                     f"--seconds={seconds}"]).output)
    return {CPU.name: 100 * told["cpu_seconds"] / told["seconds"], RSS.name: told["rss_kib"] / agents,
            PSS.name: told["pss_kib"] / agents, BEAT_P50.name: told["beat_p50_us"],
            BEAT_P99.name: told["beat_p99_us"]}


def _put(store: str, endpoint: str, writers: int, seconds: float) -> contest.Figures:
    told = json.loads(tools.run([tools.built("test/bench/daemon/put_load"), f"--store={store}",
                                 f"--endpoint={endpoint}", f"--writers={writers}", f"--seconds={seconds}"]).output)
    return {COMMITS.name: told["commits"] / told["seconds"], COMMIT_TIME.name: told["p50_us"]}


def _commits(benchmark: results.Benchmark, settings: tools.Settings) -> None:
    seconds = 0.5 if settings.quick else 3
    has_etcd = tools.peer("etcd") is not None
    if not has_etcd:
        benchmark.notes.append("etcd is not installed; scripts/bench/install_peers.sh does that")
    with contextlib.ExitStack() as running:
        disk = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-")))
        servers = {results.OURS: running.enter_context(daemon_servers.musterd(disk / "muster", secure=False))}
        if has_etcd:
            servers[ETCD] = running.enter_context(daemon_servers.etcd(disk / "etcd"))
            second = running.enter_context(daemon_servers.etcd(disk / "second"))
            servers[OVER_ETCD] = running.enter_context(daemon_servers.musterd(secure=False, etcd_at=second.endpoint))
        for writers in WRITERS:
            contestants = [
                contest.Contestant(name, functools.partial(_put, ETCD if name == ETCD else results.OURS, server.endpoint, writers,
                                                           seconds))
                for name, server in servers.items()]
            samples = contest.take_turns(f"commits of {writers}", contestants, settings.pairs)
            benchmark.add(f"{writers} writer{'s' if writers > 1 else ''}", [COMMITS, COMMIT_TIME], samples,
                          {COMMITS.name: (results.Goal(ETCD, times=1),)}, size=writers)
        daemons = [contest.Contestant(name, functools.partial(_run_at, server))
                   for name, server in servers.items() if name != ETCD]
        samples = contest.take_turns("a run of one node", daemons, settings.pairs)
        benchmark.add("a run of one node", [ROUND], samples)


def _run_at(daemon: daemon_servers.Server) -> contest.Figures:
    begin = time.monotonic()
    tools.run([tools.built("launcher/muster"), "run", "--insecure", f"--rdzv-endpoint={daemon.endpoint}", "--rdzv-id=bench",
               "--rdzv-conf=is_host=0", "--no-python", "true"])
    return {ROUND.name: 1000 * (time.monotonic() - begin)}


def measure(settings: tools.Settings) -> results.Benchmark:
    daemon_servers.allow_descriptors()
    agents, seconds = (100, 2) if settings.quick else (AGENTS, SECONDS)
    benchmark = results.Benchmark(
        "daemon", "The daemon: a thousand agents, and the journal", HOW,
        ["musterd --listen=127.0.0.1:0 --token-file=FILE|--insecure [--state-dir=DIR]",
         f"test/bench/daemon/daemon_load --endpoint=HOST:PORT --token-file=FILE --daemon-pid=PID --agents={AGENTS} --seconds={SECONDS}",
         "test/bench/daemon/put_load --store=muster|etcd --endpoint=HOST:PORT --writers=N",
         "etcd --data-dir=DIR --listen-client-urls=http://127.0.0.1:PORT ..."],
        plots=[results.Plot("Commits in a second, over the number of writers", COMMITS.name, "writers")])
    attend = [contest.Contestant(name, functools.partial(_attend, secure, seconds, agents))
              for name, secure in ((results.OURS, True), (PLAINTEXT, False))]
    samples = contest.take_turns(f"{agents} agents", attend, settings.pairs, warm_up=0)
    benchmark.add(f"{agents} agents, a beat each second", [CPU, RSS, PSS, BEAT_P50, BEAT_P99], samples,
                  {CPU.name: (results.Goal(limit=25),), RSS.name: (results.Goal(limit=160),),
                       BEAT_P50.name: (results.Goal(PLAINTEXT, times=1 / 1.3),)})
    _commits(benchmark, settings)
    rendezvous_micro.add_rows(benchmark, "test/bench/daemon/journal_benchmark", settings)
    benchmark.notes.append("journal_benchmark is Google Benchmark's, of the journal alone: the time of each entry in "
                           "commits of so many.")
    return benchmark
