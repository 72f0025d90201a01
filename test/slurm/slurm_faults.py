"""Faults of docs/faults.md in jobs of Slurm's: what is said of each there holds here too."""

import os
import signal
import time
from pathlib import Path

from processes import wait_for
from running_job import RunningJob, expect, lives

_SALLOC = ["salloc", "--quiet", "--nodes=3"]


def _one_restart_follows(cluster, number: int, cause: str, *flags: str, more: str = "") -> RunningJob:
    job = RunningJob(cluster, _SALLOC, "--max-restarts=1", *flags, more=more)
    before = job.workers(0)
    os.kill(before[1][0], number)
    job.await_round(1)
    expect(not any(lives(worker) for worker, _ in before.values()), "workers of the former round run beside the next")
    expect(job.finish() == 0, job.output())
    expect(cause in job.output(), job.output())
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
    expect(len(everybody) == 3 and not any(lives(pid) for pid in everybody), f"what workers left behind lives: {everybody}")


def f3_a_rank_is_stopped(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    os.kill(job.workers(0)[1][0], signal.SIGSTOP)
    wait_for(lambda: "rank 1" in job.output(), job.output)
    os.kill(job.workers(0)[1][0], signal.SIGCONT)
    expect(job.finish() == 0 and job.starts() == 3, job.output())


def f8_an_agent_is_killed(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--rdzv-conf=join_timeout=1")
    worker, agent = job.workers(0)[2]
    os.kill(agent, signal.SIGKILL)
    wait_for(lambda: not lives(worker), "its worker outlives it")
    expect(job.exit_code() != 0, job.output())
    expect(job.saved() == [0, 1], f"the others did not save: {job.saved()}: {job.output()}")
    job.await_nothing_left()


def f9_an_agent_is_drained(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--rdzv-conf=join_timeout=1")
    os.kill(job.workers(0)[2][1], signal.SIGTERM)
    expect(job.exit_code() != 0, job.output())
    expect(job.saved() == [0, 1, 2], f"not all workers saved: {job.saved()}: {job.output()}")
    job.await_nothing_left()


def f10_an_agent_stands_still_for_less_than_its_lease(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    agent = job.workers(0)[2][1]
    os.kill(agent, signal.SIGSTOP)
    time.sleep(1)
    os.kill(agent, signal.SIGCONT)
    expect(job.finish() == 0 and job.starts() == 3, job.output())


def _the_last_node_comes_back(cluster, leave, come_back) -> None:
    job = RunningJob(cluster, _SALLOC, "--shutdown-timeout=1", more="trap '' TERM")
    before = job.workers(0)
    leave(before[2][1])
    wait_for(lambda: not lives(before[2][0]) and not lives(before[0][0]), lambda: f"its worker goes on: {job.output()}")
    come_back(before[2][1])
    wait_for(lambda: job.starts() == 6, lambda: f"{job.starts()} workers have begun: {job.output()}")
    expect(job.finish() == 0, job.output())
    job.await_nothing_left()


def f11_an_agent_stands_still_for_longer_than_its_lease(cluster) -> None:
    _the_last_node_comes_back(cluster, lambda agent: os.kill(agent, signal.SIGSTOP), lambda agent: os.kill(agent, signal.SIGCONT))


def f13_a_cable_is_pulled(cluster) -> None:
    host = cluster.hosts[2]
    _the_last_node_comes_back(cluster, lambda _: host.pull_cable(), lambda _: host.plug_cable())


def f14_an_agent_is_not_heard(cluster) -> None:
    first, _, last = cluster.hosts
    _the_last_node_comes_back(cluster, lambda _: first.deaf_to(last.address), lambda _: first.hear_all())


def f15_an_agent_does_not_hear(cluster) -> None:
    first, _, last = cluster.hosts
    _the_last_node_comes_back(cluster, lambda _: last.deaf_to(first.address), lambda _: last.hear_all())


def f12_a_host_loses_power(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, "--rdzv-conf=join_timeout=1", "--shutdown-timeout=2")
    host = cluster.hosts[2]
    host.lose_power()
    # Nobody starts an agent again in a step, so the others end.
    wait_for(lambda: job.saved() == [0, 1], lambda: f"the others did not save: {job.saved()}: {job.output()}")
    host.plug_cable()
    _the_host_is_back(cluster, job)


def f16_a_host_reboots_in_silence(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    cluster.hosts[2].reboot()
    # Srun hears of it when it next writes to that host, and kills the step.
    _the_host_is_back(cluster, job)


def _the_host_is_back(cluster, job: RunningJob) -> None:
    cluster.start_slurmd(cluster.hosts[2])
    expect(job.exit_code() != 0, job.output())
    job.await_nothing_left()
    cluster.await_idle()


def f4_a_rank_hangs(cluster) -> None:
    beat = ("python3 -c 'import os, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"
            '.sendto(b"beat 1 7", os.environ["MUSTER_BEAT_SOCKET"])\'')
    job = RunningJob(cluster, _SALLOC, "--max-restarts=1", "--hang-timeout=0.5", "--stack-command=true {pid}",
                     more=f"test $TORCHELASTIC_RESTART_COUNT$RANK != 01 || {beat}")
    job.await_round(1)
    expect(job.finish() == 0, job.output())
    expect("rank 1 gave no sign of life" in job.output(), job.output())
    job.await_nothing_left()


def f6_a_rank_cannot_be_killed(cluster) -> None:
    # In a frozen control group of version 1 a process is in state D.
    group = Path(f"/sys/fs/cgroup/freezer/muster-slurm-{os.urandom(4).hex()}")
    if not group.parent.is_dir():
        return
    group.mkdir()
    try:
        job = RunningJob(cluster, _SALLOC, "--rdzv-conf=join_timeout=1", "--max-restarts=1", "--shutdown-timeout=1")
        stuck = job.workers(0)[2][0]
        (group / "cgroup.procs").write_text(str(stuck))
        (group / "freezer.state").write_text("FROZEN")
        os.kill(job.workers(0)[0][0], signal.SIGKILL)
        wait_for(lambda: "SIGKILL and is left behind" in job.output(), job.output)
        # Its node takes no part any more, and the job needs it.
        expect(job.exit_code() != 0, job.output())
    finally:
        (group / "freezer.state").write_text("THAWED")
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "it lives on")
        group.rmdir()
    job.await_nothing_left()


FAULTS = [
    f1_a_rank_exits_with_an_error,
    f2_a_rank_is_killed,
    f3_a_rank_is_stopped,
    f4_a_rank_hangs,
    f5_workers_ignore_sigterm,
    f6_a_rank_cannot_be_killed,
    f7_what_a_worker_left_behind,
    f8_an_agent_is_killed,
    f9_an_agent_is_drained,
    f10_an_agent_stands_still_for_less_than_its_lease,
    f11_an_agent_stands_still_for_longer_than_its_lease,
    f12_a_host_loses_power,
    f13_a_cable_is_pulled,
    f14_an_agent_is_not_heard,
    f15_an_agent_does_not_hear,
    f16_a_host_reboots_in_silence,
]
