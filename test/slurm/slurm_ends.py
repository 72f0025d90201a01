"""How Slurm ends jobs before they are done: a time limit, its warning, preemption, a drained node. Workers save in time,
the exit code is right, and a job that is requeued goes on."""

import re

from batch_job import BatchJob
from processes import wait_for


def a_time_limit_and_its_warning_let_workers_save(cluster) -> None:
    """Of three jobs the time of one is over; of another's end the script is warned, of the third's its step. They run
    side by side, because slurmctld looks every 30 s. What it would do then it is told when all workers are there: of a job
    whose time had been short from the start it signalled the step before that had a worker."""
    warned = BatchJob(cluster, "--time=10", "--signal=B:TERM@120")
    step = BatchJob(cluster, "--time=10", "--signal=TERM@120", run="exec srun --ntasks-per-node=1 muster run")
    ended = BatchJob(cluster, "--time=10")
    for job in (warned, step, ended):
        job.await_up()
    for job in (warned, step):
        cluster.run("scontrol", "update", f"JobId={job.id}", "TimeLimit=2")
    cluster.run("scontrol", "update", f"JobId={ended.id}", "EndTime=now")
    for job in (warned, step, ended):
        job.await_saved()
    for job in (warned, step):
        job.await_state("FAILED")
        job.expect_exit_code("143:0")
    ended.await_state("TIMEOUT")
    cluster.await_idle()


def a_preempted_job_saves_and_goes_on(cluster) -> None:
    job = BatchJob(cluster, "--requeue", nodes=3)
    job.await_up()
    urgent = cluster.run("sbatch", "--parsable", "--partition=urgent", "--nodes=3", "--exclusive", "--output=/dev/null",
                         "--wrap=sleep 1000").stdout.strip()
    job.await_saved()
    wait_for(lambda: cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={urgent}").stdout.strip() == "RUNNING",
             "the urgent job does not run")
    cluster.run("scancel", urgent)
    job.await_second_run()
    _goes_on(job)


def _goes_on(job: BatchJob) -> None:
    again = job.up()[job.nodes:]
    if not all(re.search(rf" {job.id}\.\d+-r1 after {job.nodes}$", line) for line in again):
        raise AssertionError(f"{again}")
    (job.folder / "go").touch()
    job.await_state("COMPLETED")
    job.expect_exit_code("0:0")


def a_job_that_is_preempted_for_good_saves(cluster) -> None:
    """PreemptMode=CANCEL, with no other grace time than KillWait, and with one, before whose end the job ends by itself."""
    for partition, state, code in (("cancelled", "PREEMPTED", None), ("graced", "FAILED", "143:0")):
        job = BatchJob(cluster, f"--partition={partition}", nodes=3)
        job.await_up()
        urgent = cluster.run("sbatch", "--parsable", "--partition=urgent", "--nodes=3", "--exclusive", "--output=/dev/null",
                             "--wrap=sleep 1000").stdout.strip()
        try:
            job.await_saved()
            wait_for(lambda: cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={urgent}").stdout.strip() == "RUNNING",
                     "the urgent job does not run")
            job.await_state(state)
            if code is not None:
                job.expect_exit_code(code)
            if len(job.up()) != job.nodes:
                raise AssertionError(f"it began again: {job.output()}")
        finally:
            cluster.run("scancel", urgent)
        cluster.await_idle()


def a_job_leaves_a_drained_node(cluster) -> None:
    """By the command of docs/slurm.md."""
    job = BatchJob(cluster, "--requeue")
    job.await_up()
    cluster.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
    try:
        cluster.run("sh", "-c", _LEAVE)
        job.await_saved()
        job.await_second_run()
        hosts = {line.split()[1] for line in job.up()[2:]}
        if hosts != {"n1", "n3"}:
            raise AssertionError(f"it runs on {hosts}: {job.output()}")
        _goes_on(job)
    finally:
        cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    cluster.await_idle()


_LEAVE = "squeue --noheader --nodelist=n2 --format=%A | xargs -r scontrol requeue"


ENDS = [
    a_time_limit_and_its_warning_let_workers_save,
    a_preempted_job_saves_and_goes_on,
    a_job_that_is_preempted_for_good_saves,
    a_job_leaves_a_drained_node,
]
