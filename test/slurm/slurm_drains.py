"""Nodes that an administrator drains: a job that can spare one leaves it by itself, any other says that it stays."""

from contextlib import contextmanager
from pathlib import Path

from processes import children, wait_for
from running_job import RunningJob, expect, lives

_SALLOC = ["salloc", "--quiet", "--nodes=3"]
_SRUN = ["srun", "--nodes=3", "--ntasks-per-node=1"]


@contextmanager
def _drained(cluster, *nodes: str, state: str = "DRAIN"):
    for node in nodes:
        cluster.run("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=bad fan")
    try:
        yield
    finally:
        for node in nodes:
            cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        cluster.await_idle()


def an_elastic_job_leaves_a_drained_node(cluster) -> None:
    """A user's job held a node that was to be repaired until the whole job had ended."""
    for how, state in ((_SALLOC, "DRAIN"), (_SRUN, "FAIL")):
        job = RunningJob(cluster, how, "--nnodes=2:3", "--drain-interval=1", "--rdzv-conf=last_call_timeout=1")
        before = job.workers(0)
        with _drained(cluster, "n3", state=state):
            wait_for(lambda: job.starts() == 5, lambda: f"{job.starts()} workers have begun: {job.output()}")
            expect(job.saved() == [0, 1, 2], f"not all had their time: {job.saved()}: {job.output()}")
            wait_for(lambda: not lives(before[2][1]), "its agent goes on")
            expect(all(lives(before[rank][1]) for rank in (0, 1)), job.output())
            expect(job.finish() == 0, job.output())
            why = "Slurm drains it (bad fan)" if state == "DRAIN" else "Slurm expects it to fail (bad fan)"
            expect(f"this node leaves the job, as {why}; the workers have 30 s to stop" in job.output(), job.output())
            expect("goes on without this node after " in job.output(), job.output())
            job.await_nothing_left()


def a_node_that_was_left_is_given_back(cluster) -> None:
    """By the command of docs/slurm.md, while the job goes on."""
    job = RunningJob(cluster, _SALLOC, "--nnodes=2:3", "--drain-interval=1", "--rdzv-conf=last_call_timeout=1")
    with _drained(cluster, "n3"):
        # Before it has gone Slurm would kill what it still does.
        wait_for(lambda: job.starts() == 5 and "goes on without this node" in job.output(), job.output)
        [running] = cluster.run("squeue", "--noheader", "--states=R", "--format=%A").stdout.split()
        cluster.run("scontrol", "update", f"JobId={running}", "NodeList=n[1-2]")
        wait_for(lambda: "drained" in cluster.states(), lambda: f"nodes are {cluster.states()}")
        expect(job.finish() == 0 and job.starts() == 5, job.output())
    job.await_nothing_left()


def a_job_that_needs_a_drained_node_says_so_and_stays(cluster) -> None:
    first_stays = "although Slurm drains it (bad fan): the rendezvous is served here"
    all_stay = "although Slurm drains it (bad fan): the job needs all of its 3 nodes"
    for node, flags, sentence in (("n3", [], all_stay), ("n1", ["--nnodes=2:3"], first_stays)):
        job = RunningJob(cluster, _SALLOC, "--drain-interval=1", *flags)
        with _drained(cluster, node):
            wait_for(lambda: sentence in job.output(), job.output)
            expect(job.finish() == 0 and job.starts() == 3, job.output())
        expect(job.output().count("although") == 1, f"it was said more than once: {job.output()}")
        job.await_nothing_left()


def of_two_drained_nodes_one_stays_where_it_is_needed(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--nnodes=2:3", "--drain-interval=1", "--rdzv-conf=last_call_timeout=1")
    with _drained(cluster, "n2", "n3"):
        sentence = "although Slurm drains it (bad fan): the job needs 2 nodes, and has 2"
        wait_for(lambda: sentence in job.output(), job.output)
        expect(job.finish() == 0 and job.starts() == 5, job.output())
    job.await_nothing_left()


def of_two_nodes_that_hear_it_at_once_one_stays(cluster) -> None:
    """Slurmctld hung, answered both in the same instant, and both left a job that could spare one."""
    job = RunningJob(cluster, _SALLOC, "--nnodes=2:3", "--drain-interval=1", "--rdzv-conf=last_call_timeout=1")
    agents = [agent for _, agent in job.workers(0).values()]

    def asking() -> int:
        named = [Path(f"/proc/{child}/comm") for agent in agents for child in children(agent)]
        return sum(name.exists() and name.read_text() == "scontrol\n" for name in named)

    with cluster.hangs():
        drains = [cluster.start("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=bad fan") for node in ("n2", "n3")]
        wait_for(lambda: asking() == 3, lambda: f"{asking()} nodes ask: {job.output()}")
    expect([drain.wait() for drain in drains] == [0, 0], "they are not drained")
    with _drained(cluster, "n2", "n3"):
        wait_for(lambda: "and has 2" in job.output(), job.output)
        expect(job.finish() == 0 and job.starts() == 5, job.output())
    expect(job.output().count("goes on without this node after ") == 1, job.output())
    job.await_nothing_left()


DRAINS = [
    an_elastic_job_leaves_a_drained_node,
    a_node_that_was_left_is_given_back,
    a_job_that_needs_a_drained_node_says_so_and_stays,
    of_two_drained_nodes_one_stays_where_it_is_needed,
    of_two_nodes_that_hear_it_at_once_one_stays,
]
