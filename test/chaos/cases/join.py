"""Nodes that come when they should not: F41, F42 and F58."""

import signal
from collections.abc import Callable

from case import Goals, case
from processes import now, wait_for
from trial import Trial


@case(
    "F41",
    "one node too many",
    fault="a fourth agent comes to a running job of three nodes",
    expected="it hears at once that it is a spare, and exits with 0 when the job succeeds",
    detects="until it has heard, from its start on",
    goals=Goals(detect_ms=100),
    torchrun="waits without a word (20 s)",
)
def one_too_many(trial: Trial) -> None:
    job = trial.start_job()
    begin = now()
    job.start_agent(trial.cluster.nodes[0], name="fourth")
    heard = wait_for(lambda: job.timeline().first("waiting", "fourth"), "the fourth agent hears nothing")
    trial.note("detect", begin, heard.ns)
    trial.expect_told(["fourth"], "spare")
    trial.expect(not job.agents["fourth"].marks(), "the fourth agent started workers")
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F42",
    "a node rank given twice",
    fault="static mode; a third agent comes with --node-rank=1, which another has",
    expected="it exits with 3 and says who has the rank; the job does not notice",
    detects="until it has exited, from its start on (the rank's holder is heard twice meanwhile)",
    goals=Goals(detect_ms=3000),
)
def rank_twice(trial: Trial) -> None:
    job = trial.prepare_job(nnodes="2")
    master = trial.cluster.nodes[0].address
    static = [f"--master-addr={master}", "--master-port=29500"]
    for rank in (0, 1):
        job.start_agent(trial.cluster.nodes[rank], meet=[*static, f"--node-rank={rank}"])
    job.wait_running()
    begin = now()
    job.start_agent(trial.cluster.nodes[2], name="imposter", meet=[*static, "--node-rank=1"])
    trial.expect_exit("imposter", 3)
    trial.note("detect", begin, now())
    trial.expect_undisturbed()
    trial.finish_job(but=("imposter",))


@case(
    "F58",
    "a node is started anew before the first round",
    fault="static mode; before rank 2 comes, `kill -9` to rank 1's agent, and at once a new one",
    expected="the new one takes the old one's place once that is known to be dead; the job runs",
    recovers="from rank 2's start on",
)
def rank_replaced(trial: Trial) -> None:
    def kill() -> None:
        program = trial.job.agents["node2"].program
        program.signal(signal.SIGKILL)
        program.wait()

    _replace_rank_1(trial, kill)


@case(
    "F58-silent",
    "a host reboots before the first round",
    fault="as F58, but the host of rank 1 loses power and comes back: no FIN, no RST",
    expected="as F58",
    recovers="from rank 2's start on",
)
def rank_replaced_silently(trial: Trial) -> None:
    _replace_rank_1(trial, trial.cluster.nodes[1].reboot)


def _replace_rank_1(trial: Trial, end: Callable[[], None]) -> None:
    job = trial.prepare_job()
    nodes = trial.cluster.nodes
    static = [f"--master-addr={nodes[0].address}", "--master-port=29500"]
    for rank in (0, 1):
        job.start_agent(nodes[rank], meet=[*static, f"--node-rank={rank}"])
    for name in ("node1", "node2"):
        wait_for(lambda: job.timeline().first("waiting", name), lambda: f"{name} does not wait; {job.last_words()}")
    end()
    job.start_agent(nodes[1], name="node2-again", meet=[*static, "--node-rank=1"])
    # The decision about it comes before rank 2.
    trial.hold(1.0)
    begin = now()
    job.start_agent(nodes[2], meet=[*static, "--node-rank=2"])
    number = job.wait_running(("node1", "node2-again", "node3"))
    trial.note("recover", begin, job.timeline().started(number))
    ranks = sorted(mark.rank for mark in job.agents["node2-again"].living_workers())
    trial.expect(ranks == [2, 3], f"the new agent of rank 1 has the worker ranks {ranks}, not those of its place")
    trial.finish_job(but=("node2",))
