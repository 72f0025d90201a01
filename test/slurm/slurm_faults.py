"""Faults of docs/faults.md in jobs of Slurm's: what is said of each there holds here too."""

import os
import signal
import time

from processes import wait_for
from running_job import RunningJob, lives

_SALLOC = ["salloc", "--quiet", "--nodes=3"]


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _one_restart_follows(cluster, number: int, cause: str, *flags: str, more: str = "") -> RunningJob:
    job = RunningJob(cluster, _SALLOC, "--max-restarts=1", *flags, more=more)
    before = job.workers(0)
    os.kill(before[1][0], number)
    job.await_round(1)
    _expect(not any(lives(worker) for worker, _ in before.values()), "workers of the former round run beside the next")
    _expect(job.finish() == 0, job.output())
    _expect(cause in job.output(), job.output())
    job.await_nothing_left()
    return job


def f1_a_rank_exits_with_an_error(cluster) -> None:
    _one_restart_follows(cluster, signal.SIGUSR2, "rank 1 exited with code 3")


def f2_a_rank_is_killed(cluster) -> None:
    _one_restart_follows(cluster, signal.SIGKILL, "SIGKILL")


def f5_workers_ignore_sigterm(cluster) -> None:
    _one_restart_follows(cluster, signal.SIGUSR2, "rank 1 exited with code 3", "--shutdown-timeout=1", more="trap '' TERM")


def f7_what_a_worker_left_behind(cluster) -> None:
    left = cluster.folder / "left"
    _one_restart_follows(cluster, signal.SIGKILL, "SIGKILL",
                         more=f"test $TORCHELASTIC_RESTART_COUNT != 0 || {{ setsid sleep 1000 & echo $! >> {left}; }}")
    everybody = [int(line) for line in left.read_text().split()]
    _expect(len(everybody) == 3 and not any(lives(pid) for pid in everybody), f"what workers left behind lives: {everybody}")


def f3_a_rank_is_stopped(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    os.kill(job.workers(0)[1][0], signal.SIGSTOP)
    wait_for(lambda: "rank 1" in job.output(), job.output)
    os.kill(job.workers(0)[1][0], signal.SIGCONT)
    _expect(job.finish() == 0 and job.starts() == 3, job.output())


def f8_an_agent_is_killed(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--rdzv-conf=join_timeout=1")
    worker, agent = job.workers(0)[2]
    os.kill(agent, signal.SIGKILL)
    wait_for(lambda: not lives(worker), "its worker outlives it")
    _expect(job.exit_code() != 0, job.output())
    _expect(job.saved() == [0, 1], f"the others did not save: {job.saved()}: {job.output()}")
    job.await_nothing_left()


def f9_an_agent_is_drained(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--rdzv-conf=join_timeout=1")
    os.kill(job.workers(0)[2][1], signal.SIGTERM)
    _expect(job.exit_code() != 0, job.output())
    _expect(job.saved() == [0, 1, 2], f"not all workers saved: {job.saved()}: {job.output()}")
    job.await_nothing_left()


def f10_an_agent_stands_still_for_less_than_its_lease(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    agent = job.workers(0)[2][1]
    os.kill(agent, signal.SIGSTOP)
    time.sleep(1)
    os.kill(agent, signal.SIGCONT)
    _expect(job.finish() == 0 and job.starts() == 3, job.output())


def f13_a_cable_is_pulled(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--shutdown-timeout=1", more="trap '' TERM")
    before = job.workers(0)
    cluster.hosts[2].pull_cable()
    wait_for(lambda: not lives(before[2][0]) and not lives(before[0][0]), lambda: f"its worker goes on: {job.output()}")
    cluster.hosts[2].plug_cable()
    wait_for(lambda: job.starts() == 6, lambda: f"{job.starts()} workers have begun: {job.output()}")
    _expect(job.finish() == 0, job.output())
    job.await_nothing_left()


FAULTS = [
    f1_a_rank_exits_with_an_error,
    f2_a_rank_is_killed,
    f3_a_rank_is_stopped,
    f5_workers_ignore_sigterm,
    f7_what_a_worker_left_behind,
    f8_an_agent_is_killed,
    f9_an_agent_is_drained,
    f10_an_agent_stands_still_for_less_than_its_lease,
    f13_a_cable_is_pulled,
]
