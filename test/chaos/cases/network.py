"""Faults of links: F13 to F15, F17 to F23 and F53."""

import random
import sys
from pathlib import Path

from case import Goals, case
from cluster import Host
from job import PORT
from processes import now, wait_for
from trial import ELASTIC, NODES, SURVIVORS, Trial

_PROXY = str(Path(__file__).parent.parent / "delay_proxy.py")
_HOLD_S = 10.0


@case(
    "F13",
    "a cable is pulled",
    fault="node3's link is down until the others have gone on; its workers ignore SIGTERM",
    expected="its workers are dead before the others' next round; with the link back it joins again",
    goals=Goals(detect_ms=3500),
    torchrun="never noticed (60 s); after another failure 15.3 s; the old round ran beside the new one for 43 s",
    features=("return",),
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def cable_pulled(trial: Trial) -> None:
    _cut_off(trial, lambda host: host.pull_cable(), lambda host: host.plug_cable())


@case(
    "F14",
    "packets from a node to the daemon are lost",
    fault="the daemon's host drops what node3 sends; its workers ignore SIGTERM",
    expected="as F13",
    goals=Goals(detect_ms=3500),
    features=("return",),
    needs=("iptables",),
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def deaf_daemon(trial: Trial) -> None:
    daemon = trial.cluster.daemon
    _cut_off(trial, lambda host: daemon.deaf_to(host.address), lambda host: daemon.hear_all())


@case(
    "F15",
    "packets from the daemon to a node are lost",
    fault="node3 drops what the daemon sends; its workers ignore SIGTERM",
    expected="as F13; the node stops its workers although the daemon hears it",
    goals=Goals(detect_ms=3500),
    features=("return",),
    needs=("iptables",),
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def deaf_node(trial: Trial) -> None:
    daemon = trial.cluster.daemon
    _cut_off(trial, lambda host: host.deaf_to(daemon.address), lambda host: host.hear_all())


@case(
    "F17",
    "a middlebox kills the connections",
    fault="`ss -K` on the daemon's host: a reset to both ends of node3's connections",
    expected="the agent reconnects to its session; no worker notices",
    recovers="until it has reconnected",
    goals=Goals(recover_ms=1000),
    features=("return",),
)
def connection_reset(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC)
    begin = now()
    trial.cluster.daemon.break_connections_with(trial.cluster.nodes[2].address)
    back = wait_for(lambda: job.timeline().first("reconnected", "node3", begin), "node3 has not reconnected")
    trial.note("recover", begin, back.ns)
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F18",
    "5 % of packets are lost",
    fault="every host drops 5 % of what arrives, for 10 s",
    expected="no round ends",
    needs=("iptables",),
    most_repeats=5,
)
def few_packets_lost(trial: Trial) -> None:
    trial.start_job(nnodes=ELASTIC)
    for host in trial.cluster.hosts:
        host.lose_packets(0.05)
    trial.hold(_HOLD_S)
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F19",
    "30 % of packets are lost",
    fault="every host drops 30 % of what arrives, for 10 s",
    expected="rounds may end, but never overlap; all nodes are together again once packets arrive",
    recovers="from the heal on",
    goals=Goals(recover_ms=10000),
    features=("return",),
    needs=("iptables",),
    most_repeats=5,
    shows=None,
)
def many_packets_lost(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC)
    for host in trial.cluster.hosts:
        host.lose_packets(0.3)
    trial.hold(_HOLD_S)
    for host in trial.cluster.hosts:
        host.hear_all()
    begin = now()
    number = job.wait_running(NODES)
    trial.note("recover", begin, max(begin, job.timeline().started(number)))
    trial.expect_restarts(0)
    trial.finish_job()


@case(
    "F20",
    "latency",
    fault="250 ± 50 ms each way between agents and daemon (a proxy holds the bytes back)",
    expected="no node is lost in 10 s; a rank's failure is handled, only slower",
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def latency(trial: Trial) -> None:
    job = trial.prepare_job()
    job.start_daemon()
    host, target = trial.cluster.daemon, job.endpoint
    job.endpoint = f"{host.address}:{PORT + 1}"
    proxy = trial.start_helper(host, sys.executable, _PROXY, job.endpoint, target, "0.25", "0.05")
    proxy.wait_for_line("ready")
    for host in trial.cluster.nodes:
        job.start_agent(host)
    job.wait_running()
    trial.hold(_HOLD_S)
    trial.expect_undisturbed()
    begin = now()
    job.worker(3).command("exit 3")
    trial.goes_on(NODES, begin, restarts=1)


@case(
    "F21",
    "a link without bandwidth",
    fault="node3 sends at 1 Mbit/s, and something else fills that link for 10 s",
    expected="no round ends",
    needs=("tc",),
    most_repeats=5,
)
def no_bandwidth(trial: Trial) -> None:
    trial.start_job(nnodes=ELASTIC)
    node, sink = trial.cluster.nodes[2], trial.cluster.nodes[0]
    trial.start_adversary(sink, "sink", sink, 5001, "ready")
    node.limit_bandwidth("1mbit")
    trial.start_adversary(node, "source", sink, 5001, "sending")
    trial.hold(_HOLD_S)
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F22",
    "a link flaps",
    fault="node3's link is down for 1 s and up for 1 s, five times",
    expected="the node is lost once at most; all are together in the end",
    recovers="from the last heal on",
    most_repeats=5,
    shows=None,
)
def flapping(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC)
    node = trial.cluster.nodes[2]
    for _ in range(5):
        node.pull_cable()
        trial.hold(1.0)
        node.plug_cable()
        trial.hold(1.0)
    begin = now()
    number = job.wait_running(NODES)
    trial.note("recover", begin, max(begin, job.timeline().started(number)))
    # One round without it, and one with it again.
    trial.expect(number <= 2, f"the job is in round {number}; {job.last_words()}")
    trial.expect_restarts(0)
    trial.finish_job()


@case(
    "F23",
    "links fail one by one and heal in another order",
    fault=(
        "two hosts of four, the daemon's included, lose their links one after the other for up to 6 s "
        "and get them back in a random order"
    ),
    expected="all nodes are together again within 10 s; no two rounds overlap",
    recovers="from the last heal on",
    goals=Goals(recover_ms=10000),
    features=("return",),
    most_repeats=5,
    shows=None,
)
def swizzle_clog(trial: Trial) -> None:
    job = trial.start_job(nnodes="1:3")
    clogged = random.sample(trial.cluster.hosts, 2)
    for host in clogged:
        host.pull_cable()
        trial.hold(random.uniform(0.0, 3.0))
    for host in random.sample(clogged, len(clogged)):
        trial.hold(random.uniform(0.0, 3.0))
        host.plug_cable()
    begin = now()
    number = job.wait_running(NODES)
    trial.note("recover", begin, max(begin, job.timeline().started(number)))
    trial.expect_restarts(0)
    trial.finish_job()


@case(
    "F53",
    "a firewall refuses connections",
    fault="every packet between node3 and the daemon is answered with a reset until the others have gone on and node3 "
    "has ended; node3's workers ignore SIGTERM",
    expected="a refusal is not the daemon's word: its workers are dead before the others' next round, and the daemon, "
    "which has no journal, is given up when the lease is over",
    goals=Goals(detect_ms=3500),
    needs=("iptables",),
    shows="node node3 was lost",
)
def refused(trial: Trial) -> None:
    _cut_off(trial, lambda host: _refuse(trial, host), lambda host: _let_pass(trial, host), comes_back=False)


@case(
    "F53-state",
    "a firewall refuses connections to a daemon with a journal",
    fault="as F53, musterd with --state-dir",
    expected="as F13",
    goals=Goals(detect_ms=3500),
    features=("state-dir",),
    needs=("iptables",),
    shows="node node3 was lost",
)
def refused_with_state(trial: Trial) -> None:
    _cut_off(trial, lambda host: _refuse(trial, host), lambda host: _let_pass(trial, host), keep_state=True)


def _refuse(trial: Trial, host: Host) -> None:
    daemon = trial.cluster.daemon
    daemon.refuse(host.address)
    host.refuse(daemon.address)


def _let_pass(trial: Trial, host: Host) -> None:
    trial.cluster.daemon.hear_all()
    host.hear_all()


def _cut_off(trial: Trial, cut, heal, keep_state: bool = False, comes_back: bool = True) -> None:
    """node3 hears or is heard no more until the others have gone on; then it comes back, or has given up. Its workers do not obey
    SIGTERM: nothing but a SIGKILL in time keeps them from running beside the others' next round."""
    job = trial.start_job(keeps_state=keep_state, nnodes=ELASTIC, stubborn=["node3"])
    node: Host = trial.cluster.nodes[2]
    begin = now()
    cut(node)
    trial.detected(SURVIVORS, begin)
    number = trial.recovered(SURVIVORS, begin)
    trial.expect_no_workers(["node3"])
    if not comes_back:
        trial.expect_exit("node3", 3)
        heal(node)
        return trial.finish_job(but=("node3",))
    healed = now()
    heal(node)
    back = job.wait_running(NODES, number)
    trial.note("back", healed, job.timeline().started(back))
    trial.expect_restarts(0)
    trial.finish_job()

