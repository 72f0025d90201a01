"""Faults of the daemon's process and of its port: F25, F31, F34, F37, F39, F40, F44 and F56. Its outages are in
outages.py."""

import contextlib
import fcntl
import os
import random
import re
import signal
import subprocess
from pathlib import Path

from case import Goals, case
from job import PORT
from processes import now, resident_kib, wait_for
from trial import NODES, Trial

_STATE = ("state-dir",)
# Fills a pipe.
_BALLAST = "unread "
# In any words: a count, lines, and that they are missing.
_LOST_LINES = re.compile(r"^(?=.*\b[1-9]\d*\b)(?=.*\blines?\b).*\b(lost|dropped|missing|left out|discarded)\b",
                         re.MULTILINE)


@case(
    "F25",
    "the daemon is killed at any step",
    fault="five times: rank 3 fails, and within 30 ms the daemon's process is killed, which is started again",
    expected="round numbers are unique, the restart count never goes back, the job goes on",
    recovers="after the last one",
    features=_STATE,
    shows="rank 3 on host node2 exited with code 3",
)
def killed_at_any_step(trial: Trial) -> None:
    job = trial.start_job(keeps_state=True, max_restarts=100)
    number = 0
    begin = now()
    for _ in range(5):
        begin = now()
        job.worker(3).command("exit 3")
        trial.hold(random.uniform(0.0, 0.03))
        job.crash_daemon()
        number = job.wait_running(NODES, number)
    trial.note("recover", begin, job.timeline().started(number))
    timeline = job.timeline()
    counts = [max(mark.restart_count for mark in timeline.workers_of(number)) for number in timeline.rounds()]
    trial.expect(counts == sorted(counts), f"the restart count went back: {counts}")
    for number in timeline.rounds():
        workers = timeline.workers_of(number)
        ranks = {mark.rank for mark in workers}
        trial.expect(len(ranks) == len(workers), f"a rank was given twice in round {number}")
    trial.finish_job()


@case(
    "F31",
    "the daemon is flooded with connections",
    fault="musterd may have 64 descriptors; 1000 connections come and stay for 3 s",
    expected="the job runs on, a failure is handled; 1 s after the flood new agents are served again",
    recovers="until a new agent is served, from the flood's end on",
    goals=Goals(recover_ms=1000),
    torchrun="the agent took more than 10 000 strangers without a limit",
    shows="rank 3 on host node2 exited with code 3",
)
def flooded(trial: Trial) -> None:
    job = trial.start_job()
    for pid in job.daemon_processes():
        subprocess.run(["prlimit", f"--pid={pid}", "--nofile=64:64"], check=True)
    flood = trial.start_adversary(trial.cluster.nodes[0], "flood", trial.cluster.daemon, PORT, "flooding")
    trial.hold(3.0)
    trial.expect_undisturbed()
    flood.signal(signal.SIGKILL)
    flood.wait()
    begin = now()
    alone = ["--nnodes=1", "--nproc-per-node=1", "--rdzv-id=other"]
    other = job.start_agent(trial.cluster.nodes[1], name="stranger", stranger=True, flags=alone)
    served = wait_for(
        lambda: next((event.ns for event in other.events() if event.name == "assigned"), None),
        lambda: f"the new job's agent is not served: {other.program.last_words()}",
    )
    trial.note("recover", begin, served)
    trial.survives_failure()
    job.workers_finish()
    for name in (*NODES, other.name):
        trial.expect_exit(name, 0)


@case(
    "F34",
    "the daemon gets no memory",
    fault=(
        "the address space of the daemon's process is limited to what it has, and new connections come; then it is "
        "killed, and started again"
    ),
    expected="no worker notices",
    recovers="until all agents are back, from the kill on",
    features=_STATE,
)
def no_memory(trial: Trial) -> None:
    job = trial.start_job(keeps_state=True)
    limited = job.serving()
    pages = Path(f"/proc/{limited}/statm").read_text(encoding="ascii").split()[0]
    size = int(pages) * os.sysconf("SC_PAGE_SIZE")
    subprocess.run(["prlimit", f"--pid={limited}", f"--as={size}"], check=True)
    flood = trial.start_adversary(trial.cluster.nodes[0], "flood", trial.cluster.daemon, PORT, "flooding")
    trial.hold(2.0)
    flood.signal(signal.SIGKILL)
    trial.daemon_crashes()
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F37",
    "two daemons on one port",
    fault="a second musterd with the same --listen",
    expected="it exits with 3 and says why; the job does not notice",
    detects="until it has exited",
    goals=Goals(detect_ms=100),
)
def second_on_port(trial: Trial) -> None:
    job = trial.start_job()
    first = job.daemon
    begin = now()
    second = job.start_daemon(wait=False)
    trial.expect(second.wait() == 3, "the second musterd did not exit with 3")
    trial.note("detect", begin, now())
    said = second.last_words()
    trial.expect("address already in use" in said.lower(), f"the second musterd said: {said}")
    job.daemon = first
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F39",
    "the daemon's port is taken",
    fault="another program listens on musterd's port",
    expected="musterd exits with 3 and names the port; an agent sent there ends and says why",
    detects="until musterd has exited",
    goals=Goals(detect_ms=1000),
    torchrun="a traceback, exits within 8 s",
    shows=None,
)
def port_taken(trial: Trial) -> None:
    job = trial.prepare_job(flags=["--rdzv-conf=connect_timeout=2"])
    address = trial.cluster.daemon.address
    trial.start_adversary(trial.cluster.daemon, "stranger", trial.cluster.daemon, PORT, "ready")
    begin = now()
    daemon = job.start_daemon(wait=False)
    trial.expect(daemon.wait() == 3, "musterd did not exit with 3")
    trial.note("detect", begin, now())
    trial.expect(f"{address}:{PORT}" in daemon.last_words(), f"musterd said: {daemon.last_words()}")
    job.start_agent(trial.cluster.nodes[0])
    trial.expect_exit("node1", 3)
    trial.expect_told(["node1"], f"{address}:{PORT}")


@case(
    "F40",
    "many agents at once",
    fault="24 agents; the daemon's process is killed, and started again",
    expected="all reconnect, no worker notices",
    recovers="until all agents are back, from the kill on",
    goals=Goals(recover_ms=3000),
    features=_STATE,
)
def herd(trial: Trial) -> None:
    # So many marks at the usual pace would use all of two CPUs.
    job = trial.prepare_job(nnodes="24", nproc=1, worker_env={"CHAOS_TICK_US": "5000"})
    job.keep_state()
    job.start_daemon()
    for i in range(24):
        job.start_agent(trial.cluster.nodes[i % 3], name=f"agent{i}")
    job.wait_running(seconds=60)
    trial.daemon_crashes()
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F44",
    "garbage on the daemon's port",
    fault=(
        "300 connections from another host that send HTTP/1.1, TLS, noise, half a preface, oversized "
        "and broken frames, or nothing"
    ),
    expected="musterd grows by less than 32 MiB; the job runs on and a failure is handled",
    torchrun="its store survived 320 such connections",
    shows="rank 3 on host node2 exited with code 3",
)
def garbage(trial: Trial) -> None:
    job = trial.start_job()
    before = resident_kib(job.serving())
    sender = trial.start_adversary(trial.cluster.nodes[0], "garbage", trial.cluster.daemon, PORT)
    trial.expect(sender.wait(60) == 0, f"the sender failed: {sender.last_words()}")
    grown = resident_kib(job.serving()) - before
    # gRPC takes up to 140 KiB per connection and frees it slowly.
    trial.expect(grown < 32 << 10, f"musterd's memory grew by {grown} KiB")
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()


@case(
    "F56",
    "nobody reads musterd's stderr",
    fault="musterd's stderr is a full pipe for 5 s and on; rank 3 fails, another job comes",
    expected="no node is lost, both jobs end well; once the pipe is read, the lines come, or how many are missing",
    recovers="from a failure while the pipe is full",
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def stderr_unread(trial: Trial) -> None:
    job = trial.prepare_job()
    near, far = os.pipe()
    os.set_blocking(near, False)
    fcntl.fcntl(far, fcntl.F_SETPIPE_SZ, 4096)
    daemon = job.start_daemon(stderr=far)
    for host in trial.cluster.nodes:
        job.start_agent(host)
    # The job's first round fits; what comes now does not.
    job.wait_running()
    _fill_pipe(far)
    other = job.start_agent(trial.cluster.nodes[0], name="other", stranger=True,
                            flags=["--nnodes=1", "--nproc-per-node=1", "--rdzv-id=other"])
    wait_for(lambda: other.living_workers() or None,
             lambda: f"another job does not start: {other.program.last_words()}", 10)
    trial.hold(5.0)
    trial.expect_undisturbed()
    trial.survives_failure("recover")
    trial.finish_job()
    said = _read_all(near)
    # Leaves room for a while before the next line.
    trial.hold(0.5)
    daemon.signal(signal.SIGTERM)
    wait_for(lambda: not daemon.running(), "musterd does not end on SIGTERM")
    trial.expect(daemon.wait() == 0, f"musterd ended with {daemon.wait()}")
    said = (said + _read_all(near)).decode(errors="replace")
    told = _LOST_LINES.search(said) is not None or "run=chaos round=1" in said
    last_words = [line for line in said.splitlines() if _BALLAST not in line][-3:]
    trial.expect(told, f"musterd's log lacks round 1, and does not say that lines are missing: {last_words}")
    os.close(near)
    os.close(far)


def _read_all(read_end: int) -> bytes:
    """What is in a pipe now."""
    said = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(read_end, 1 << 16):
            said += piece
    return said


def _fill_pipe(write_end: int) -> None:
    """Over a description of its own: that it does not block must not hold for musterd's."""
    own = os.open(f"/proc/self/fd/{write_end}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        for piece in (f"{_BALLAST * 99}\n".encode(), b"\n"):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(own, piece)
    finally:
        os.close(own)
