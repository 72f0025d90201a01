"""Signals to what was typed in an allocation, and to what Slurm takes for it: as on one node, workers have their time."""

import os
import re
import signal
from pathlib import Path

from batch_job import BatchJob
from processes import children, wait_for
from running_job import RunningJob, expect, lives

_SALLOC = ["salloc", "--quiet", "--nodes=3"]


def _told(job: RunningJob) -> int:
    """How often workers were signalled, all together."""
    path = job.folder / "told"
    return len(path.read_text().splitlines()) if path.exists() else 0


def a_signal_to_the_typed_command_lets_workers_save(cluster) -> None:
    """A user's `kill` of `muster run` in salloc killed the workers on all nodes at once."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        job = RunningJob(cluster, _SALLOC, more="trap 'echo >> $folder/told; asked=1' TERM HUP INT")
        os.kill(job.typed(), number)
        expect(job.exit_code() == 128 + number, f"{number}: exit code {job.process.returncode}: {job.output()}")
        expect(job.saved() == [0, 1, 2], f"{number}: only {job.saved()} saved: {job.output()}")
        expect(_told(job) == 3, f"{number}: signalled {_told(job)} times")
        job.await_nothing_left()


def a_second_signal_kills_workers_at_once(cluster) -> None:
    job = RunningJob(cluster, _SALLOC, more="trap 'echo >> $folder/told' INT TERM")
    os.kill(job.typed(), signal.SIGINT)
    wait_for(lambda: _told(job) >= 3, lambda: f"signalled {_told(job)} times: {job.output()}")
    os.kill(job.typed(), signal.SIGINT)
    expect(job.exit_code() == 130, f"exit code {job.process.returncode}: {job.output()}")
    job.await_nothing_left()


def a_third_signal_ends_a_step_whose_nodes_do_not_answer(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    for _, agent in job.workers(0).values():
        os.kill(agent, signal.SIGSTOP)
    typed = job.typed()
    for _ in range(3):
        # Two that wait at once are one.
        wait_for(lambda: not _is_pending(typed, signal.SIGINT), "it does not take the signal")
        os.kill(typed, signal.SIGINT)
    expect(job.exit_code() == 130, f"exit code {job.process.returncode}: {job.output()}")
    job.await_nothing_left()


def _is_pending(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def a_killed_command_leaves_nothing_behind(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    typed = job.typed()
    [srun] = children(typed)
    os.kill(typed, signal.SIGKILL)
    job.await_nothing_left()
    wait_for(lambda: not lives(srun), "srun is left behind")
    job.exit_code()


def signals_to_a_batch_script_let_workers_save(cluster) -> None:
    """What Slurm sends to the script and to all its steps is one request, not two."""
    for how in (["--signal=TERM", "--batch"], ["--signal=TERM", "--full"], []):
        job = BatchJob(cluster)
        job.await_up()
        cluster.run("scancel", *how, job.id)
        job.await_saved()
        wait_for(lambda: re.search("JobState=(FAILED|CANCELLED) ", job.show()), job.output)
        expect(job.told() == ["0", "1"], f"{how}: ranks told: {job.told()}: {job.output()}")
        if how:
            job.expect_exit_code("143:0")


SIGNALS = [
    a_signal_to_the_typed_command_lets_workers_save,
    a_second_signal_kills_workers_at_once,
    a_third_signal_ends_a_step_whose_nodes_do_not_answer,
    a_killed_command_leaves_nothing_behind,
    signals_to_a_batch_script_let_workers_save,
]
