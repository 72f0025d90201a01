"""Nodes and workers that are late for an end, a round's or the job's: F50 and F51."""

import signal

from case import Goals, case
from job import Job
from processes import TimedOut, now
from trial import ELASTIC, NODES, SURVIVORS, Trial

# Short, so that a node that wrongly starts the job again shows up soon.
_LAST_CALL = "--rdzv-conf=last_call_timeout=1"
# Longer than join_timeout, and shorter than --shutdown-timeout.
_SLOW_S = 10


@case(
    "F50",
    "a node sleeps through the job's end",
    fault="--nnodes=1:2; `kill -STOP` to node2's agent; node1 goes on alone and finishes; `kill -CONT`",
    expected="node2 hears how the job ended and ends likewise; its workers do not run again",
    detects="until it has exited, from `kill -CONT` on",
    shows="node node2 was lost: nothing was heard from it for 2.5 s",
)
def sleeps_through_success(trial: Trial) -> None:
    _fall_asleep(trial)
    trial.job.workers_finish()
    trial.expect_exit("node1", 0)
    _wake_up(trial, succeeded=True)


@case(
    "F50-failed",
    "a node sleeps through the job's failure",
    fault="as F50, but node1's rank 0 fails until the job's budget is spent",
    expected="as F50; nobody comes back with a new budget",
    detects="until it has exited, from `kill -CONT` on",
    shows="failed in round 2: rank 0 on host node1 exited with code 3, and the one restart is used up",
)
def sleeps_through_failure(trial: Trial) -> None:
    _fall_asleep(trial)
    _spend_budget(trial)
    _wake_up(trial, succeeded=False)


@case(
    "F50-killed",
    "a node sleeps through the job's failure, and the daemon is killed",
    fault="as F50-failed, musterd with --state-dir; before node2 wakes up the daemon's process is killed, which is "
    "started again",
    expected="as F50-failed",
    detects="until it has exited, from `kill -CONT` on",
    features=("state-dir",),
    shows="failed in round 2: rank 0 on host node1 exited with code 3, and the one restart is used up",
)
def sleeps_through_failure_and_restart(trial: Trial) -> None:
    _fall_asleep(trial, keep_state=True)
    _spend_budget(trial)
    trial.job.crash_daemon()
    _wake_up(trial, succeeded=False)


@case(
    "F51",
    "workers stop for longer than join_timeout",
    fault=f"join_timeout=5, --shutdown-timeout=15, node3's workers take {_SLOW_S} s to stop; rank 0 exits with 3",
    expected="the next round starts when all of them are dead, with all nodes",
    goals=Goals(detect_ms=100),
    most_repeats=5,
    shows="rank 0 on host node1 exited with code 3",
)
def slow_to_stop(trial: Trial) -> None:
    _slow_to_stop(trial, "15")


@case(
    "F51-inf",
    "workers may stop for as long as they like",
    fault="as F51, with --shutdown-timeout=inf",
    expected="as F51",
    goals=Goals(detect_ms=100),
    most_repeats=5,
    shows="rank 0 on host node1 exited with code 3",
)
def slow_to_stop_without_limit(trial: Trial) -> None:
    _slow_to_stop(trial, "inf")


@case(
    "F51-lost",
    "a host loses power, and workers elsewhere stop for longer than join_timeout",
    fault=f"--nnodes=1:3, join_timeout=5, --shutdown-timeout=15; node3 loses power, node2's workers take {_SLOW_S} s "
    "to stop",
    expected="node1 does not go on alone: the next round starts when all workers are dead, with node2",
    goals=Goals(detect_ms=3500),
    most_repeats=5,
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def lost_and_slow_to_stop(trial: Trial) -> None:
    _start_with_slow_node(trial, "15", "1:3", "node2")
    begin = now()
    trial.cluster.nodes[2].lose_power()
    trial.goes_on(SURVIVORS, begin, restarts=0, but=("node3",))


def _fall_asleep(trial: Trial, keep_state: bool = False) -> None:
    """node1 and node2 run; then node2's agent stands still, and node1 goes on alone."""
    job = trial.prepare_job(nnodes="1:2", max_restarts=1, flags=[_LAST_CALL], stubborn=["node2"])
    if keep_state:
        job.keep_state()
    job.start_daemon()
    for host in trial.cluster.nodes[:2]:
        job.start_agent(host)
    job.wait_running()
    job.agents["node2"].program.signal(signal.SIGSTOP)
    job.wait_running(["node1"], after_round=0)
    trial.expect_no_workers(["node2"])


def _spend_budget(trial: Trial) -> None:
    job = trial.job
    job.worker(0).command("exit 3")
    job.wait_running(["node1"], after_round=1)
    job.worker(0).command("exit 3")
    code = job.agents["node1"].program.wait()
    trial.expect(code not in (0, 3), f"agent node1 exited with {code}, not as for a worker that failed")


def _wake_up(trial: Trial, succeeded: bool) -> None:
    job = trial.job
    node = job.agents["node2"]
    awake = node.program.signal(signal.SIGCONT)
    try:
        code = node.program.wait(15)
        trial.note("detect", awake, max(event.ns for event in node.events()))
        trial.expect((code == 0) == succeeded, f"agent node2 exited with {code}: {node.program.last_words()}")
    except TimedOut as error:
        trial.expect(False, str(error))
    again = sorted(mark.rank for mark in node.marks() if mark.first_ns > awake)
    trial.expect(not again, f"node2 began the job that had ended anew: it ran ranks {again}")


def _slow_to_stop(trial: Trial, patience: str) -> None:
    job = _start_with_slow_node(trial, patience, ELASTIC, "node3")
    begin = now()
    job.worker(0).command("exit 3")
    trial.goes_on(NODES, begin, restarts=1)


def _start_with_slow_node(trial: Trial, patience: str, nnodes: str, slow: str) -> Job:
    job = trial.prepare_job(
        nnodes=nnodes, flags=[f"--shutdown-timeout={patience}", "--rdzv-conf=join_timeout=5"])
    job.start_daemon()
    for host in trial.cluster.nodes:
        job.start_agent(host, env={"CHAOS_STOP_S": str(_SLOW_S)} if host.name == slow else None)
    job.wait_running()
    return job
