"""Outages of the rendezvous: F24, F52, F54 and F55."""

import os
import signal
import subprocess

from case import Goals, case
from job import PORT
from processes import now, wait_for
from trial import NODES, Trial

_STATE = ("state-dir",)
# How long a worker takes to save and exit; longer than its node's lease.
_SAVING_S = 6
_MEANWHILE = ["--shutdown-timeout=30"]


@case(
    "F24",
    "the daemon is killed",
    fault="`kill -9` to the daemon's process, which is started again at once",
    expected="no worker notices; agents reconnect; the next failure is handled as before",
    recovers="until all agents are back, from the kill on",
    goals=Goals(recover_ms=3000),
    torchrun="its store lives in an agent: all other agents exit after 1.6 s",
    features=_STATE,
    shows="rank 3 on host node2 exited with code 3",
)
def killed(trial: Trial) -> None:
    trial.start_job(keeps_state=True)
    trial.daemon_crashes()
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()


@case(
    "F24-long",
    "the daemon is away for a minute, where refusals are trusted",
    fault="--rdzv-conf=trust_refusals=true; `kill -9` to all of musterd, its restart 60 s later",
    expected="as F24",
    recovers="until all agents are back, from its restart on",
    goals=Goals(recover_ms=3000),
    torchrun="as F24",
    features=_STATE,
    most_repeats=2,
    shows="rank 3 on host node2 exited with code 3",
)
def away_for_long(trial: Trial) -> None:
    _trusted_outage(trial, 60.0)


@case(
    "F24-trusted",
    "the daemon is away, where refusals are trusted",
    fault="as F24-long, its restart 8 s later",
    expected="as F24",
    recovers="until all agents are back, from its restart on",
    goals=Goals(recover_ms=3000),
    torchrun="as F24",
    features=_STATE,
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def away_for_longer_than_a_lease(trial: Trial) -> None:
    _trusted_outage(trial, 8.0)


@case(
    "F52",
    "a daemon without a journal is killed",
    fault=f"`kill -9` to the daemon's process, musterd without --state-dir; workers take {_SAVING_S} s to save, "
    "--shutdown-timeout=30",
    expected="no one can give their ranks away: all workers save and end by themselves, then their agents",
    detects="until the last agent stops its workers",
    recovers="until the last worker has ended",
    most_repeats=5,
    shows="the rendezvous at 10.78.0.100:29400 is gone: its process has died",
)
def forgetful_daemon_killed(trial: Trial) -> None:
    job = trial.start_job(flags=_MEANWHILE, worker_env={"CHAOS_STOP_S": str(_SAVING_S)})
    begin = now()
    os.kill(job.serving(), signal.SIGKILL)
    _all_save(trial, NODES, begin)


@case(
    "F52-host",
    "the agent that hosts the rendezvous is killed",
    fault=f"`kill -9` to node1's agent, which hosts it; the other nodes' workers take {_SAVING_S} s to save, "
    "--shutdown-timeout=30",
    expected="as F52, on the other nodes",
    detects="until the last agent stops its workers",
    recovers="until the last worker has ended",
    torchrun="all other agents exit after 1.6 s",
    most_repeats=5,
    shows="the rendezvous at 10.78.0.1:29400 is gone: its process has died",
)
def host_killed(trial: Trial) -> None:
    job = trial.prepare_job(flags=_MEANWHILE, worker_env={"CHAOS_STOP_S": str(_SAVING_S)})
    job.endpoint = f"{trial.cluster.nodes[0].address}:{PORT}"
    for host in trial.cluster.nodes:
        job.start_agent(host)
    job.wait_running()
    begin = job.agents["node1"].program.signal(signal.SIGKILL)
    _all_save(trial, NODES[1:], begin)


@case(
    "F54",
    "all of musterd is killed",
    fault="`kill -9` to musterd and to whatever would start it again; workers ignore SIGTERM; its restart when they "
    "are gone",
    expected="workers are dead when their lease ends; after the restart all nodes come back, at no cost",
    detects="until every worker is dead",
    recovers="from the restart on",
    goals=Goals(detect_ms=3000),
    torchrun="as F24",
    features=_STATE,
    shows="rejoined",
)
def wholly_killed(trial: Trial) -> None:
    job = trial.start_job(keeps_state=True, stubborn=NODES)
    begin = now()
    job.kill_daemon()
    wait_for(lambda: not any(mark.alive for mark in job.timeline().marks),
             "workers run on although nobody has answered for three leases", 9)
    trial.note("detect", begin, max(mark.last_ns for mark in job.timeline().marks))
    begin = now()
    job.start_daemon()
    number = job.wait_running(NODES, 0)
    trial.note("recover", begin, job.timeline().started(number))
    trial.expect_restarts(0)
    trial.finish_job()


@case(
    "F55",
    "the daemon is restarted on purpose",
    fault="SIGHUP to musterd's main process",
    expected="its daemon starts anew; no worker notices; the next failure is handled as before",
    recovers="until all agents are back, from the signal on",
    goals=Goals(recover_ms=3000),
    features=_STATE,
    shows="rank 3 on host node2 exited with code 3",
)
def restarted(trial: Trial) -> None:
    job = trial.start_job(keeps_state=True)
    daemon = job.daemon
    assert daemon is not None
    begin = daemon.signal(signal.SIGHUP)
    # A musterd that does not handle the signal dies of it soon.
    trial.hold(1.0)
    if not daemon.running():
        raise RuntimeError(f"musterd ended by SIGHUP, with {daemon.wait()}, instead of starting its daemon anew")
    trial.all_reconnect(begin)
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()


def _trusted_outage(trial: Trial, seconds: float) -> None:
    # Unknown keys are accepted unread, so only a bad value shows whether this key is read.
    bad = [trial.tools.muster, "run", "--dry-run", "--rdzv-conf=trust_refusals=perhaps", "--no-python", "true"]
    code = subprocess.run(bad, capture_output=True, check=False).returncode
    trial.expect(code == 2, f"muster does not know trust_refusals: with 'perhaps' for it, it exits with {code}, not 2")
    job = trial.start_job(keeps_state=True, flags=["--rdzv-conf=trust_refusals=true"])
    job.kill_daemon()
    trial.hold(seconds)
    trial.daemon_comes_back()
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()


def _all_save(trial: Trial, agents: tuple[str, ...], begin: int) -> None:
    """Every worker of the first round on `agents` has its time to save; then the agents end, and not with 0."""
    job = trial.job

    def workers() -> list:
        return [mark for mark in job.timeline().workers_of(0) if mark.agent in agents]

    wait_for(lambda: not any(mark.alive for mark in workers()), lambda: f"workers run on; {job.last_words()}")
    killed = sorted(mark.rank for mark in workers() if not mark.left_ns)
    lived = max(mark.last_ns for mark in workers()) - begin
    trial.expect(not killed, f"ranks {killed} were killed while they saved; the last lived for {lived / 1e9:.1f} s")
    told = [job.timeline().first("stopping", name, begin) for name in agents]
    if all(told):
        trial.note("detect", begin, max(event.ns for event in told if event))
    trial.note("recover", begin, begin + lived)
    for name in agents:
        code = job.agents[name].program.wait()
        trial.expect(code != 0, f"agent {name} exited with 0 although its workers were stopped")
