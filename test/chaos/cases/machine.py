"""Faults of a node's machine: F28, F32, F33, F35, F36 and F43."""

import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from case import Goals, case
from processes import now, wait_for
from tools import ControlGroup
from trial import NODES, Trial


@case(
    "F28",
    "the log's disk is full",
    fault="--log-dir on a tmpfs of 1 MiB, --tee=3; every rank of node1 writes 4 MiB",
    expected="no worker notices; the agent says once per file that it loses lines",
    detects="until the agent says so",
    torchrun="a worker's write fails, and the job with it",
    trouble="has lost output: No space left on device",
)
def log_disk_full(trial: Trial) -> None:
    logs = trial.folder / "logs"
    logs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(logs)], check=True)
    try:
        job = trial.prepare_job(flags=["--tee=3"])
        job.start_daemon()
        for host in trial.cluster.nodes:
            job.start_agent(host, flags=[f"--log-dir={logs}"] if host.name == "node1" else [])
        job.wait_running()
        begin = now()
        for mark in job.agents["node1"].living_workers():
            mark.command("flood 4")
        line = job.agents["node1"].program.wait_for_line("No space left on device", begin)
        trial.note("detect", begin, line.ns)
        trial.sees_trouble("output_lost", "has lost output: No space left on device")
        trial.hold(1.0)
        trial.expect_undisturbed()
        trial.finish_job()
        said = sum("No space left on device" in line.text for line in job.agents["node1"].program.lines)
        trial.expect(said <= 2, f"the agent says {said} times that the disk is full")
    finally:
        subprocess.run(["umount", "-l", str(logs)], check=True)


@case(
    "F32",
    "an agent has no descriptors left",
    fault="node2's agent gets no more descriptors; rank 3 exits with 3",
    expected="the job goes on, or ends everywhere and says why",
    recovers="until workers run again or agents have ended",
    shows="rank 3 on host node2 exited with code 3",
)
def no_descriptors(trial: Trial) -> None:
    job = trial.start_job()
    agent = job.agents["node2"].program
    used = max(int(path.name) for path in Path(f"/proc/{agent.pid}/fd").iterdir()) + 1
    subprocess.run(["prlimit", f"--pid={agent.pid}", f"--nofile={used}:{used}"], check=True)
    begin = now()
    job.worker(3).command("exit 3")
    _goes_on_or_ends_well(trial, begin, "node2", "Too many open files")


@case(
    "F33",
    "an agent cannot fork",
    fault="node2's pids control group is full but for the failed worker; rank 3 exits with 3",
    expected="the job goes on, or ends everywhere and says why",
    recovers="until workers run again or agents have ended",
    needs=("pids",),
    shows="rank 3 on host node2 could not be started: fork: Resource temporarily unavailable",
)
def cannot_fork(trial: Trial) -> None:
    with ControlGroup("pids", "full") as group:
        job = trial.prepare_job()
        job.start_daemon()
        for host in trial.cluster.nodes:
            job.start_agent(host, prefix=group.entrance() if host.name == "node2" else ())
        job.wait_running()
        # Without its two workers there is room for one.
        group.write("pids.max", int(group.read("pids.current")) - 1)
        begin = now()
        job.worker(3).command("exit 3")
        _goes_on_or_ends_well(trial, begin, "node2", "Resource temporarily unavailable")


@case(
    "F35",
    "an overloaded machine",
    fault="16 busy loops on all hosts' processors for 10 s; then rank 3 exits with 3",
    expected="no node is lost, one restart",
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def no_processor_time(trial: Trial) -> None:
    trial.start_job()
    for _ in range(16):
        trial.start_helper(trial.cluster.nodes[0], "sh", "-c", "while :; do :; done")
    trial.hold(10.0)
    trial.expect_undisturbed()
    begin = now()
    trial.job.worker(3).command("exit 3")
    trial.goes_on(NODES, begin, restarts=1)


@case(
    "F36",
    "clocks are an hour off",
    fault=(
        "wall clocks: node1 +1 h, node2 −1 h, node3 jumps between them each second, the daemon +1 h; "
        "rank 3 exits with 3"
    ),
    expected="no effect",
    goals=Goals(detect_ms=100, recover_ms=500),
    torchrun="−60 s: the node is silently left out; +60 s: the job deadlocks after a rank's failure",
    shows="rank 3 on host node2 exited with code 3",
)
def clocks_off(trial: Trial) -> None:
    job = trial.prepare_job()
    library = {"LD_PRELOAD": trial.tools.clock_skew}
    job.start_daemon(env={**library, "SKEW_S": "3600"})
    skews = [{"SKEW_S": "3600"}, {"SKEW_S": "-3600"}, {"SKEW_S": "3600", "SKEW_PERIOD_S": "1"}]
    for host, skew in zip(trial.cluster.nodes, skews):
        job.start_agent(host, env={**library, **skew})
    job.wait_running()
    # Longer than a jump takes.
    trial.hold(2.0)
    trial.expect_undisturbed()
    with open(job.agents["node1"].folder / "events.json", encoding="utf-8") as log:
        ahead = datetime.fromisoformat(json.loads(log.readline())["time"]) - datetime.now(timezone.utc)
    trial.expect(ahead.total_seconds() > 3000, f"the fault was not injected: node1's clock is {ahead} ahead")
    begin = now()
    job.worker(3).command("exit 3")
    trial.goes_on(NODES, begin, restarts=1)


@case(
    "F43",
    "name resolution fails",
    fault=(
        "the daemon's name is in a hosts file that is emptied while the job runs; a new agent is sent "
        "to the name, too"
    ),
    expected="the job does not notice; the new agent exits with 3 and names the host",
    detects="until the new agent has exited, connect_timeout=2 included",
    torchrun="a traceback, and the job dies",
    shows="rank 3 on host node2 exited with code 3",
)
def no_names(trial: Trial) -> None:
    hosts = trial.folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{trial.cluster.daemon.address} rendezvous.test\n", encoding="ascii")
    nowhere = trial.folder / "resolv.conf"
    nowhere.touch()
    mounts = {"/etc/hosts": hosts, "/etc/resolv.conf": nowhere}
    for place, file in mounts.items():
        subprocess.run(["mount", "--bind", str(file), place], check=True)
    try:
        job = trial.prepare_job()
        job.endpoint = job.endpoint.replace(trial.cluster.daemon.address, "rendezvous.test")
        job.start()
        hosts.write_text("127.0.0.1 localhost\n", encoding="ascii")
        begin = now()
        flags = ["--rdzv-id=other", "--rdzv-conf=connect_timeout=2"]
        job.start_agent(trial.cluster.nodes[0], name="late", stranger=True, flags=flags)
        trial.expect_exit("late", 3)
        trial.note("detect", begin, now())
        trial.expect_told(["late"], "rendezvous.test")
        trial.expect_undisturbed()
        begin = now()
        job.worker(3).command("exit 3")
        trial.recovered(NODES, begin)
        trial.finish_job(but=("late",))
    finally:
        for place in mounts:
            subprocess.run(["umount", place], check=True)


def _goes_on_or_ends_well(trial: Trial, begin: int, agent: str, cause: str) -> None:
    """Which of the two happened is seen by whether the next round's workers or the agents' ends come first."""
    job = trial.job
    programs = [job.agents[name].program for name in NODES]

    def settled() -> bool:
        return job.timeline().running(NODES, 0) is not None or not any(program.running() for program in programs)

    wait_for(settled, lambda: f"neither do all workers run nor have all agents ended; {job.last_words()}")
    trial.note("recover", begin, now())
    if not job.agents[agent].program.running():
        silent = [program.name for program in programs if not program.said(cause)]
        trial.expect(not silent, f"the terminals of {silent} do not have the cause '{cause}'")
        codes = {program.wait() for program in programs}
        trial.expect(codes <= {1, 3}, f"the agents exited with {codes}")
        return
    trial.finish_job()
