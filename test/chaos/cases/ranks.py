"""Faults of one worker: F1 to F7, and F48."""

import os
import signal

from case import Goals, case
from processes import now, resident_kib, wait_for
from tools import ControlGroup
from trial import NO_LEFTOVERS, NODES, Trial

_RANK_GOALS = Goals(detect_ms=100, recover_ms=500)


@case(
    "F1",
    "a rank exits with an error",
    fault="rank 3 of 6 calls `_exit(3)`",
    expected=(
        "one restart for the whole job, the same count everywhere; every terminal names rank, host "
        "and code"
    ),
    goals=_RANK_GOALS,
    torchrun="local agent 17 ms, other nodes 0.83 s; restarted after 2.3 s",
    shows="rank 3 on host node2 exited with code 3",
)
def exits(trial: Trial) -> None:
    job = trial.start_job()
    begin = now()
    job.worker(3).command("exit 3")
    _restarts_once(trial, begin, "rank 3 on host node2 exited with code 3")


@case(
    "F2",
    "a rank is killed",
    fault="`kill -9` to rank 3",
    expected="as F1; the cause is the signal",
    goals=_RANK_GOALS,
    torchrun="as F1",
    shows="rank 3 on host node2 was killed by SIGKILL",
)
def is_killed(trial: Trial) -> None:
    job = trial.start_job()
    victim = job.worker(3).pid
    begin = now()
    os.kill(victim, signal.SIGKILL)
    _restarts_once(trial, begin, "rank 3 on host node2 was killed by SIGKILL")


@case(
    "F2-segv",
    "a rank crashes",
    fault="SIGSEGV in rank 3",
    expected="as F1; the cause is the signal",
    goals=_RANK_GOALS,
    torchrun="as F1",
    shows="rank 3 on host node2 was killed by SIGSEGV",
)
def crashes(trial: Trial) -> None:
    job = trial.start_job()
    begin = now()
    job.worker(3).command(f"signal {int(signal.SIGSEGV)}")
    _restarts_once(trial, begin, "rank 3 on host node2 was killed by SIGSEGV")


@case(
    "F2-oom",
    "a rank runs out of memory",
    fault="node2's agent is in a memory control group of 256 MiB; rank 3 takes 512",
    expected="as F1; the cause is the out-of-memory killer",
    detects="from the rank's death on",
    recovers="from the rank's death on",
    goals=_RANK_GOALS,
    torchrun="as F1, not told apart from `kill -9`",
    needs=("memory",),
    shows="rank 3 on host node2 was killed by SIGKILL, by the kernel's out-of-memory killer",
)
def runs_out_of_memory(trial: Trial) -> None:
    with ControlGroup("memory", "oom", memory__limit_in_bytes=str(256 << 20)) as group:
        job = trial.prepare_job()
        job.start_daemon()
        for host in trial.cluster.nodes:
            job.start_agent(host, prefix=group.entrance() if host.name == "node2" else ())
        job.wait_running()
        # As in a real job, the agent is not the largest process beside the victim.
        other, victim = job.worker(2), job.worker(3)
        other.command("allocate 64")
        wait_for(lambda: resident_kib(other.pid) > 64 << 10, "rank 2 does not get its 64 MiB")
        begin = now()
        victim.command("allocate 512")
        _restarts_once(trial, begin, "out-of-memory killer")
        timeline = job.timeline()
        death = next(mark.last_ns for mark in timeline.marks if mark.pid == victim.pid)
        told = timeline.all_told(NODES, begin)
        assert told is not None
        trial.note("detect", death, told)
        trial.note("recover", death, timeline.started(1))


@case(
    "F3",
    "a rank is stopped",
    fault="`kill -STOP` to rank 3, later `kill -CONT`",
    expected="said with the rank's name within 2 s; no restart",
    detects="until the agent says so",
    goals=Goals(detect_ms=2000),
    torchrun="never noticed (40 s)",
    features=("stopped-workers",),
    trouble="was stopped by SIGSTOP",
)
def is_stopped(trial: Trial) -> None:
    job = trial.start_job()
    victim = job.worker(3).pid
    begin = now()
    os.kill(victim, signal.SIGSTOP)
    seen = wait_for(lambda: job.timeline().first("worker_stopped"), "no worker_stopped in an event log")
    trial.note("detect", begin, seen.ns)
    trial.expect(seen.rank == 3, f"worker_stopped names rank {seen.rank}")
    trial.sees_trouble("stopped", "was stopped by SIGSTOP")
    os.kill(victim, signal.SIGCONT)
    wait_for(lambda: job.timeline().first("worker_continued"), "no worker_continued in an event log")
    trial.sees_no_trouble()
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F4",
    "a rank hangs",
    fault="rank 3 lives but sends no more beats; --hang-timeout=2",
    expected="evidence is taken, then one restart",
    detects="until the agent says so, the 2 s included",
    goals=Goals(detect_ms=3000),
    torchrun="never noticed",
    features=("hang-timeout",),
    shows="rank 3 on host node2 was killed by muster (SIGKILL), as it gave no sign of life for",
)
def hangs(trial: Trial) -> None:
    job = trial.start_job(flags=["--hang-timeout=2", "--hang-action=restart"])
    begin = now()
    job.worker(3).command("hang")
    seen = wait_for(lambda: job.timeline().first("hang_detected"), "no hang_detected in an event log")
    trial.note("detect", begin, seen.ns)
    trial.recovered(NODES, begin)
    trial.expect(job.timeline().first("evidence") is not None, "no evidence was taken")
    trial.expect_restarts(1)
    trial.finish_job()


@case(
    "F5",
    "workers ignore SIGTERM",
    fault="all workers ignore SIGTERM, --shutdown-timeout=2; rank 3 exits with 3",
    expected="all nodes stop theirs at the same time: grace + 1 s",
    goals=Goals(detect_ms=100, recover_ms=3000),
    torchrun="59.2 s: 30 s of grace on one node after the other",
    shows="rank 3 on host node2 exited with code 3",
)
def ignore_sigterm(trial: Trial) -> None:
    job = trial.start_job(flags=["--shutdown-timeout=2"], worker_env={"CHAOS_IGNORE_TERM": "1"})
    begin = now()
    job.worker(3).command("exit 3")
    _restarts_once(trial, begin, "rank 3 on host node2 exited with code 3")


@case(
    "F6",
    "a rank cannot be killed",
    fault="rank 5 is in state D (frozen v1 control group), --shutdown-timeout=1; rank 0 exits with 3",
    expected="said with rank, pid and state; its node takes part no more, and no one waits longer than grace + 6 s",
    detects="until its agent says so",
    recovers="on the other nodes",
    goals=Goals(detect_ms=7000),
    torchrun="the agent waited without end (fixed upstream in May 2026)",
    needs=("freezer",),
    shows="rank 0 on host node1 exited with code 3",
)
def cannot_be_killed(trial: Trial) -> None:
    with ControlGroup("freezer", "stuck") as group:
        job = trial.start_job(nnodes="2:3", flags=["--shutdown-timeout=1"])
        group.add(job.worker(5).pid)
        agent = job.worker(5).agent
        group.write("freezer.state", "FROZEN")
        wait_for(lambda: group.read("freezer.state").strip() == "FROZEN", "the worker does not freeze")
        begin = now()
        job.worker(0).command("exit 3")
        try:
            line = job.agents[agent].program.wait_for_line("SIGKILL and is left behind", begin)
            trial.note("detect", begin, line.ns)
            others = {mark.agent for mark in job.timeline().marks} - {agent}
            number = wait_for(lambda: job.timeline().running(others, 0) or job.timeline().running(job.agents, 0),
                              "the others do not go on")
            trial.note("recover", begin, job.timeline().started(number))
        finally:
            group.write("freezer.state", "THAWED")
        job.workers_finish()
        for name in job.agents:
            expected = (3,) if name == agent else (0,)
            trial.expect(job.agents[name].program.wait() in expected, f"{name} did not end well")


@case(
    "F7",
    "what a worker left behind",
    fault="each worker has a child that left its session and parent; rank 3 exits with 3",
    expected="none of them is alive when the next round's workers start",
    goals=Goals(detect_ms=100, recover_ms=1000),
    torchrun="3 processes survived the agent's exit",
    shows="rank 3 on host node2 exited with code 3",
)
def escapees(trial: Trial) -> None:
    job = trial.start_job(flags=NO_LEFTOVERS, worker_env={"CHAOS_ESCAPE": "1"})
    wait_for(lambda: sum(mark.escaped for mark in job.timeline().marks) == 6, "the escaped processes are not there")
    begin = now()
    job.worker(3).command("exit 3")
    _restarts_once(trial, begin, "rank 3 on host node2 exited with code 3")


@case(
    "F48",
    "a worker floods its log",
    fault="rank 3 writes 256 MiB of lines as fast as it can, with --tee=3",
    expected="no restart, every line arrives, the agent grows by less than 8 MiB a rank",
    recovers="until 256 MiB are in the log file",
)
def floods(trial: Trial) -> None:
    logs = trial.folder / "logs"
    job = trial.start_job(flags=["--tee=3", f"--log-dir={logs}"])
    agent = job.agents[job.worker(3).agent].program
    before = resident_kib(agent.pid)
    highest = before
    begin = now()
    job.worker(3).command("flood 256")

    def written() -> bool:
        nonlocal highest
        highest = max(highest, resident_kib(agent.pid))
        return sum(file.stat().st_size for file in logs.rglob("stdout.log")) >= 256 << 20

    wait_for(written, "256 MiB are not in the log file", 60)
    trial.note("recover", begin, now())
    trial.expect(highest - before < 16 << 10, f"the agent's memory grew by {highest - before} KiB")
    trial.expect_undisturbed()
    trial.finish_job()


def _restarts_once(trial: Trial, begin: int, sentence: str) -> None:
    """All nodes know why, all run again with restart count 1, and the job then succeeds."""
    trial.detected(NODES, begin)
    trial.recovered(NODES, begin)
    trial.expect_told(NODES, sentence)
    counts = {mark.restart_count for mark in trial.job.timeline().workers_of(1)}
    trial.expect(counts == {1}, f"TORCHELASTIC_RESTART_COUNT is {counts} in round 1")
    trial.finish_job()
