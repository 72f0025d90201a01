"""Jobs of Slurm's, with its own daemons: what a user types in an allocation, and what comes of it.

usage: slurm_test.py MUSTER
"""

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "chaos"))
sys.path.append(str(Path(__file__).resolve().parent))

import isolation
from processes import wait_for
from running_job import RunningJob, expect
from slurm_drains import DRAINS
from slurm_ends import ENDS
from slurm_faults import FAULTS
from slurm_signals import SIGNALS

_SKIPPED = 77
_SALLOC = ["salloc", "--quiet", "--nodes=3"]
_WORKER = "echo rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME, job $TORCHELASTIC_RUN_ID, master $MASTER_ADDR"


def _ranks(output: str) -> list[tuple[int, str]]:
    found = re.findall(r"rank (\d+) of (\d+) on (\w+)", output)
    expect(all(int(of) == len(found) for _, of, _ in found), f"not all ranks are there: {output}")
    return sorted((int(rank), host) for rank, _, host in found)


def srun_needs_no_further_flag(cluster) -> None:
    done = cluster.run("srun", "--nodes=3", "--ntasks-per-node=1", "muster", "run", "--nproc-per-node=2", "--no-python",
                       "sh", "-c", _WORKER, check=False)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    expect(_ranks(done.stdout) == [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2"), (4, "n3"), (5, "n3")], done.stdout)
    expect(re.search(r"job \d+\.0,", done.stdout) is not None, f"the step's name is not the run id: {done.stdout}")
    expect("warning" not in done.stderr.lower(), done.stderr)


def the_command_in_readme_runs_as_it_stands(cluster) -> None:
    readme = (Path(__file__).resolve().parent.parent.parent / "README.md").read_text()
    commands = re.findall(r"^    (srun .*)$", readme, re.MULTILINE)
    expect(len(commands) == 1, f"{commands}")
    # In one piece, so that two workers' lines do not mix.
    (cluster.folder / "train.py").write_text(
        "import os\nos.write(1, 'rank {RANK} of {WORLD_SIZE} on {SLURMD_NODENAME}\\n'.format(**os.environ).encode())\n")
    done = cluster.run("sh", "-c", commands[0], check=False)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    expect(_ranks(done.stdout) == [(0, "n1"), (1, "n2")], done.stdout)


def a_shell_of_salloc_starts_all_hosts(cluster) -> None:
    done = cluster.run("salloc", "--quiet", "--nodes=3", "muster", "run", "--no-python", "sh", "-c", _WORKER, check=False)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    expect(_ranks(done.stdout) == [(0, "n1"), (1, "n2"), (2, "n3")], done.stdout + done.stderr)


def an_allocation_has_one_step_for_all_hosts(cluster) -> None:
    """A user saw a step for each host, and the report of each."""
    job = RunningJob(cluster, _SALLOC)
    steps = cluster.run("squeue", "--steps", "--noheader", "--format=%i %N").stdout.split()
    expect(len(steps) == 2 and steps[1] == "n[1-3]", f"steps: {steps}")
    os.kill(job.workers(0)[1][0], signal.SIGUSR2)
    expect(job.exit_code() == 1, job.output())
    expect(job.output().count("Root Cause") == 1, f"not one report: {job.output()}")
    done = cluster.run(*_SALLOC, "muster", "run", "--no-python", "sh", "-c", "echo here", check=False)
    expect(sorted(done.stdout.split()) == [f"[default{rank}]:here" for rank in range(3)], done.stdout + done.stderr)


def ctrl_c_in_an_allocation_ends_all_nodes(cluster) -> None:
    job = RunningJob(cluster, _SALLOC)
    job.interrupt()
    expect(job.exit_code() == 130, f"exit code {job.process.returncode}: {job.output()}")
    job.await_nothing_left()


def a_secret_is_in_nobodys_command_line(cluster) -> None:
    job = RunningJob(cluster, [*_SALLOC, "env", f"HOME={cluster.folder}/nowhere"])
    said = b"".join(Path(f"/proc/{agent}/cmdline").read_bytes() for _, agent in job.workers(0).values())
    expect(said.count(b"--token-fd=3") == 3, f"{said}")
    expect(job.finish() == 0, job.output())


def a_cancelled_script_without_srun_lets_all_workers_save(cluster) -> None:
    """A user saw that one of two workers had saved."""
    for how in (["scancel"], ["scancel", "--signal=TERM"], ["scontrol", "requeue"]):
        job = RunningJob(cluster, ["sbatch", "--wait", "--quiet", "--nodes=3", "--output=/dev/null", str(_script(cluster))])
        running = cluster.run("squeue", "--noheader", "--format=%i").stdout.split()
        cluster.run(*how, *running)
        wait_for(lambda: job.saved() == [0, 1, 2], lambda: f"{how}: only {job.saved()} saved")
        cluster.run("scancel", *running, check=False)
        job.exit_code()
        job.await_nothing_left()


def _script(cluster) -> Path:
    script = cluster.folder / "any.sh"
    script.write_text("#!/bin/sh\n\"$@\"\n")
    return script


def a_workers_exit_code_is_the_jobs(cluster) -> None:
    for how in (["srun", "--nodes=2", "--ntasks-per-node=1"], ["salloc", "--quiet", "--nodes=2"]):
        done = cluster.run(*how, "muster", "run", "--no-python", "sh", "-c", 'test $RANK != 1 || exit 7', check=False)
        expect(done.returncode == 1, f"{how[0]}: exit code {done.returncode}: {done.stderr}")
        expect("rank 1 exited with code 7" in done.stderr, f"{how[0]}: the report does not name it: {done.stderr}")


def two_steps_on_the_same_hosts_do_not_meet(cluster) -> None:
    script = cluster.folder / "two.sh"
    script.write_text(f"""#!/bin/sh
for i in 1 2; do
  srun --overlap --nodes=2 --ntasks-per-node=1 muster run --no-python sh -c '{_WORKER}' > {cluster.folder}/step$i &
done
wait
""")
    cluster.run("sbatch", "--wait", "--nodes=2", "--output=/dev/null", str(script))
    jobs = set()
    for i in (1, 2):
        said = (cluster.folder / f"step{i}").read_text()
        expect(len(_ranks(said)) == 2, said)
        jobs |= set(re.findall(r"job ([\d.]+),", said))
    expect(len(jobs) == 2, f"steps shared a name: {jobs}")


def workers_can_save_before_the_time_limit(cluster) -> None:
    saved = cluster.folder / "saved"
    script = cluster.folder / "limit.sh"
    worker = f"trap 'echo $RANK >> {saved}; exit 0' TERM; echo up >> {cluster.folder}/up; while :; do sleep 0.1; done"
    script.write_text(f"#!/bin/sh\nexec srun --ntasks-per-node=1 muster run --no-python sh -c \"{worker.replace('$', chr(92) + '$')}\"\n")
    job = cluster.run("sbatch", "--parsable", "--nodes=2", f"--output={cluster.folder}/limit.out", str(script)).stdout.strip()
    up = cluster.folder / "up"
    wait_for(lambda: up.exists() and up.read_text().count("up") == 2, lambda: (cluster.folder / "limit.out").read_text())
    # As slurmctld ends a job whose time is over: SIGTERM, and SIGKILL after KillWait.
    cluster.run("scancel", job)
    wait_for(lambda: saved.exists() and sorted(saved.read_text().split()) == ["0", "1"],
             lambda: f"workers did not save: {saved.read_text() if saved.exists() else 'none'}; "
                     f"{(cluster.folder / 'limit.out').read_text()}")
    wait_for(lambda: cluster.states() == {"idle"}, lambda: f"nodes are {cluster.states()}")


def a_requeued_job_goes_on_under_another_name(cluster) -> None:
    out = cluster.folder / "again"
    script = cluster.folder / "requeue.sh"
    script.write_text(f"""#!/bin/sh
srun --ntasks-per-node=1 muster run --no-python sh -c '{_WORKER}' >> {out}
test "${{SLURM_RESTART_COUNT:-0}}" != 0 || {{ scontrol requeue $SLURM_JOB_ID; sleep 60; }}
""")
    job = cluster.run("sbatch", "--parsable", "--requeue", "--nodes=2", "--output=/dev/null", str(script)).stdout.strip()
    wait_for(lambda: out.exists() and len(out.read_text().splitlines()) == 2, "it did not run")
    # Slurm holds a requeued job back for up to two minutes, for the nodes' sake; an administrator need not wait.
    wait_for(lambda: "PENDING" in cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={job}", check=False).stdout,
             "it was not requeued")

    def ran_again() -> bool:
        cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
        return len(out.read_text().splitlines()) == 4

    wait_for(ran_again, lambda: out.read_text())
    names = set(re.findall(r"job ([\w.-]+),", out.read_text()))
    expect(names == {f"{job}.0", f"{job}.0-r1"}, f"{names}")


def sbatch_runs_what_it_was_given(cluster) -> None:
    out = cluster.folder / "queued"
    command = ["muster", "sbatch", "--nodes=2", f"--output={out}", "--wait", "--", "--no-python", "sh", "-c", _WORKER]
    done = cluster.run(*command, check=False)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    expect(_ranks(out.read_text()) == [(0, "n1"), (1, "n2")], out.read_text())
    printed = cluster.run(*command[:2], "--dry-run", *command[2:]).stdout
    expect(printed.startswith("#!/bin/sh\n#SBATCH --nodes=2\n"), printed)


CASES: list[Callable] = [
    srun_needs_no_further_flag,
    the_command_in_readme_runs_as_it_stands,
    a_shell_of_salloc_starts_all_hosts,
    an_allocation_has_one_step_for_all_hosts,
    ctrl_c_in_an_allocation_ends_all_nodes,
    a_secret_is_in_nobodys_command_line,
    a_cancelled_script_without_srun_lets_all_workers_save,
    a_workers_exit_code_is_the_jobs,
    sbatch_runs_what_it_was_given,
    two_steps_on_the_same_hosts_do_not_meet,
    workers_can_save_before_the_time_limit,
    a_requeued_job_goes_on_under_another_name,
    *SIGNALS,
    *ENDS,
    *DRAINS,
    *FAULTS,
]


def _reap_until_end(child: int) -> int:
    """As process 1: for slurmstepd, what nobody has waited for still runs."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def main(muster: str, *wanted: str) -> int:
    from cluster_slurm import Cluster

    missing = [name for name in ("slurmctld", "slurmd", "srun") if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        print(f"no {missing[0]} here: scripts/setup.sh installs it", file=sys.stderr)
        return 1
    if (reason := isolation.enter()) is not None:
        print(f"no network namespaces here: {reason}", file=sys.stderr)
        return _SKIPPED
    if (cases := os.fork()) != 0:
        return _reap_until_end(cases)
    cluster = Cluster(3, str(Path(muster).resolve().parent))
    failed = 0
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        try:
            case(cluster)
            print(f"ok      {case.__name__}", flush=True)
        except Exception as error:  # Whatever it is, the other cases say more.
            failed += 1
            print(f"FAILED  {case.__name__}: {error}", flush=True)
            cluster.clear()
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main(*sys.argv[1:]))
