"""Nodes that come when they should not: F41 and F42."""

from case import Goals, case
from processes import now, wait_for
from trial import Trial


@case(
    "F41",
    "one node too many",
    fault="a fourth agent comes to a running job of three nodes",
    expected="it hears at once that it is a spare, waits, and exits with 0 when the job succeeds",
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
    detects="until it has exited, from its start on",
    goals=Goals(detect_ms=100),
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

