"""Faults of one agent or of its host: F8 to F12, F16, F38, F45 and F57."""

import os
import signal
import sys
from pathlib import Path

from case import Goals, case
from processes import now, wait_for
from trial import ELASTIC, NO_LEFTOVERS, NODES, SURVIVORS, Trial

_WITHOUT_SYSCALL = str(Path(__file__).parent.parent / "without_syscall.py")
_CLOSE_RANGE = "436"  # The same number on every architecture (Linux 5.9).


@case(
    "F8",
    "an agent is killed",
    fault="`kill -9` to node3's agent, whose workers have escaped children",
    expected="its workers end with it; the others go on; no process is left",
    detects="until the daemon notices",
    goals=Goals(detect_ms=50, recover_ms=1500),
    torchrun="its workers live on; the others never notice (40 s)",
    shows="node node3 was lost: its agent died, and so did its workers",
)
def agent_killed(trial: Trial) -> None:
    trial.start_job(nnodes=ELASTIC, flags=NO_LEFTOVERS, worker_env={"CHAOS_ESCAPE": "1"})
    _kill_node3(trial)


@case(
    "F57",
    "an agent is killed on an old kernel",
    fault="`kill -9` to node3's agent, whose workers have escaped children, where close_range(2) fails with ENOSYS",
    expected="as F8",
    detects="until the daemon notices",
    goals=Goals(detect_ms=50, recover_ms=1500),
    shows="node node3 was lost: its agent died, and so did its workers",
)
def agent_killed_on_old_kernel(trial: Trial) -> None:
    job = trial.prepare_job(nnodes=ELASTIC, flags=NO_LEFTOVERS, worker_env={"CHAOS_ESCAPE": "1"})
    job.start_daemon()
    prefix = [sys.executable, _WITHOUT_SYSCALL, _CLOSE_RANGE]
    for host in trial.cluster.nodes:
        job.start_agent(host, prefix=prefix if host.name == "node3" else ())
    job.wait_running()
    _kill_node3(trial)


def _kill_node3(trial: Trial) -> None:
    job = trial.job
    wait_for(lambda: sum(mark.escaped for mark in job.timeline().marks) == 6, "the escaped processes are not there")
    begin = job.agents["node3"].program.signal(signal.SIGKILL)
    assert job.daemon is not None
    daemon = job.daemon
    notice = wait_for(lambda: daemon.said("connection ended", begin) or daemon.said("was lost", begin),
                      "the daemon does not notice")
    trial.note("detect", begin, notice.ns)
    trial.recovered(SURVIVORS, begin)
    trial.note("its workers gone", begin, max(mark.last_ns for mark in job.agents["node3"].marks()))
    trial.expect_no_workers(["node3"])
    trial.expect_restarts(0)
    trial.finish_job(but=("node3",))


@case(
    "F9",
    "an agent is drained",
    fault="SIGTERM to node3's agent",
    expected=(
        "it says goodbye and exits with 143; the others form the next round at once, without "
        "spending a restart"
    ),
    goals=Goals(detect_ms=100),
    torchrun="the others never notice (25 s)",
    shows="node node3 is leaving: interrupted by SIGTERM",
)
def agent_drained(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC)
    begin = job.agents["node3"].program.signal(signal.SIGTERM)
    trial.detected(SURVIVORS, begin)
    trial.recovered(SURVIVORS, begin)
    trial.expect_exit("node3", 128 + signal.SIGTERM)
    trial.expect_restarts(0)
    trial.finish_job(but=("node3",))


@case(
    "F10",
    "an agent stands still for less than its lease",
    fault="`kill -STOP` to node3's agent, `kill -CONT` after 1 s",
    expected="nothing at all",
)
def agent_paused_briefly(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC)
    agent = job.agents["node3"].program
    agent.signal(signal.SIGSTOP)
    trial.hold(1.0)
    agent.signal(signal.SIGCONT)
    # As long again, for consequences.
    trial.hold(1.0)
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F11",
    "an agent stands still for longer than its lease",
    fault="`kill -STOP` to node3's agent, workers ignore SIGTERM; `kill -CONT` when the others have gone on",
    expected="its workers are dead before the others' next round; it joins again as a new node",
    goals=Goals(detect_ms=3500),
    torchrun="never noticed (40 s)",
    features=("return",),
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def agent_paused(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC, stubborn=["node3"])
    agent = job.agents["node3"].program
    begin = agent.signal(signal.SIGSTOP)
    trial.detected(SURVIVORS, begin)
    number = trial.recovered(SURVIVORS, begin)
    healed = agent.signal(signal.SIGCONT)
    back = job.wait_running(NODES, number)
    trial.note("back", healed, job.timeline().started(back))
    trial.expect_restarts(0)
    trial.finish_job()


@case(
    "F12",
    "a host loses power",
    fault="node3's cable is dead and all its processes are killed: no FIN, no RST",
    expected="the others go on without it",
    goals=Goals(detect_ms=3500),
    torchrun="never noticed",
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def power_lost(trial: Trial) -> None:
    trial.start_job(nnodes=ELASTIC)
    begin = now()
    trial.cluster.nodes[2].lose_power()
    trial.goes_on(SURVIVORS, begin, restarts=0, but=("node3",))


@case(
    "F16",
    "a host reboots silently",
    fault="node3 loses power; at once its cable is back and a new agent starts there",
    expected="the new agent gets the old one's place, at the latest when the old lease ends",
    goals=Goals(recover_ms=4500),
    shows="node node3 was lost: its connection ended",
)
def half_open(trial: Trial) -> None:
    job = trial.start_job()
    host = trial.cluster.nodes[2]
    begin = now()
    host.reboot()
    job.start_agent(host, name="node3-again")
    trial.recovered(("node1", "node2", "node3-again"), begin)
    trial.expect_restarts(0)
    trial.finish_job(but=("node3",))


@case(
    "F38",
    "a node of an old round wakes up",
    fault="node3's agent stands still, its rank 4 is killed; it wakes in the others' next round",
    expected="its old report changes nothing: no restart is spent",
    goals=Goals(detect_ms=3500),
    torchrun="no fencing: an old round's workers ran beside the new one's for 43 s",
    features=("return",),
    shows="node node3 was lost: nothing was heard from it for 2.5 s",
)
def stale_report(trial: Trial) -> None:
    job = trial.start_job(nnodes=ELASTIC)
    agent = job.agents["node3"]
    begin = agent.program.signal(signal.SIGSTOP)
    os.kill(agent.living_workers()[0].pid, signal.SIGKILL)
    trial.detected(SURVIVORS, begin)
    number = trial.recovered(SURVIVORS, begin)
    agent.program.signal(signal.SIGCONT)
    job.wait_running(NODES, number)
    trial.expect_restarts(0)
    trial.finish_job()


@case(
    "F45",
    "the ssh that started an agent dies",
    fault="node3's agent runs on a terminal as under `ssh -tt`; the terminal's other end closes",
    expected="it ends with SIGHUP's code and leaves nothing; the others go on",
    goals=Goals(detect_ms=1000),
    torchrun="`ssh host cmd`: the remote process leaks; `ssh -tt`: it ends",
    shows="node node3 is leaving: interrupted by SIGHUP",
)
def ssh_dies(trial: Trial) -> None:
    job = trial.prepare_job(nnodes=ELASTIC)
    job.start_daemon()
    for host in trial.cluster.nodes[:2]:
        job.start_agent(host)
    near, far = os.openpty()
    # `setsid --ctty` makes it the controlling terminal, as sshd does; closing our end then hangs
    # up.
    terminal = {"stdin": far, "stdout": far, "start_new_session": False}
    # An agent whose parent ignores SIGHUP, as under nohup, ignores it, too.
    prefix = ["env", "--default-signal=HUP", "setsid", "--ctty"]
    job.start_agent(trial.cluster.nodes[2], prefix=prefix, **terminal)
    os.close(far)
    job.wait_running()
    begin = now()
    os.close(near)
    trial.detected(SURVIVORS, begin)
    trial.recovered(SURVIVORS, begin)
    trial.expect_exit("node3", 128 + signal.SIGHUP)
    trial.expect_restarts(0)
    trial.finish_job(but=("node3",))
