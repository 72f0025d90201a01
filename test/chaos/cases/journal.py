"""Faults of the daemon's journal and its disk: F26, F27, F29, F30 and the state directory's part of F37."""

import os
import signal
import subprocess
from pathlib import Path

from case import Goals, case
from processes import is_alive, now, wait_for
from trial import NODES, Trial

_STATE = ("state-dir",)


@case(
    "F26",
    "the journal's end is torn",
    fault="musterd is killed, its journal's newest file loses its last 7 bytes, musterd is started",
    expected="the torn end is cut off, no worker notices",
    recovers="until all agents are back, from its restart on",
    goals=Goals(recover_ms=3000),
    features=_STATE,
)
def torn_journal(trial: Trial) -> None:
    job = trial.prepare_job()
    state = job.keep_state()
    job.start()
    job.kill_daemon()
    newest = max((file for file in state.iterdir() if file.stat().st_size > 7 and not file.name.endswith("-shm")),
                 key=lambda file: file.stat().st_mtime_ns)
    os.truncate(newest, newest.stat().st_size - 7)
    trial.daemon_comes_back()
    trial.expect_undisturbed()
    trial.finish_job()


@case(
    "F26-flip",
    "the journal is corrupt",
    fault="musterd has ended, the last 64 bytes of each page of its journal are overwritten, musterd is started",
    expected="it refuses to start and names the journal",
    detects="until it has exited",
    goals=Goals(detect_ms=2000),
    features=_STATE,
    shows=None,
)
def corrupt_journal(trial: Trial) -> None:
    job = trial.prepare_job()
    state = job.keep_state()
    job.start()
    trial.finish_job()
    assert job.daemon is not None
    job.daemon.signal(signal.SIGTERM)
    job.daemon.wait()
    for file in state.iterdir():
        _overwrite(file)
    begin = now()
    daemon = job.start_daemon(wait=False)
    code = daemon.wait()
    trial.note("detect", begin, now())
    trial.expect(code not in (0, 128 + signal.SIGABRT, 128 + signal.SIGSEGV), f"musterd exited with {code}")
    trial.expect(str(state) in daemon.last_words(), f"musterd does not name its journal: {daemon.last_words()}")


@case(
    "F27",
    "the daemon's disk is full",
    fault="the state directory is on a tmpfs of 4 MiB, which something else fills for 5 s",
    expected="the job runs on; with space again a failure is handled as before",
    recovers="from a failure once there is space",
    features=_STATE,
    shows="rank 3 on host node2 exited with code 3",
)
def state_disk_full(trial: Trial) -> None:
    job = trial.prepare_job()
    state = job.keep_state()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(state)], check=True)
    try:
        job.start()
        _fill(state / "ballast")
        trial.hold(5.0)
        trial.expect_undisturbed()
        (state / "ballast").unlink()
        trial.survives_failure("recover")
        trial.finish_job()
        job.kill_daemon()
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


@case(
    "F29",
    "the disk fails",
    fault="every fdatasync and fsync of musterd fails with EIO; rank 3 fails",
    expected="it ends at once and says why; restarted on a good disk, it goes on",
    detects="until the daemon's process has ended",
    recovers="from the restart on",
    goals=Goals(detect_ms=1000),
    features=_STATE,
    needs=("strace",),
    shows="rank 3 on host node2 exited with code 3",
)
def disk_fails(trial: Trial) -> None:
    job = trial.start_job(keeps_state=True)
    assert job.daemon is not None
    serving = job.serving()
    tracer = trial.slow_or_break_disk("fdatasync,fsync:error=EIO")
    begin = now()
    job.worker(3).command("exit 3")
    wait_for(lambda: not is_alive(serving), "the daemon's process goes on although its disk fails")
    trial.note("detect", begin, now())
    job.daemon.wait_for_line("so that a restart can recover from disk", begin, 5)
    tracer.wait()
    begin = now()
    if serving == job.daemon.pid:
        code = job.daemon.wait()
        trial.expect(code not in (0, 128 + signal.SIGSEGV), f"musterd exited with {code}")
        job.start_daemon()
    trial.recovered(NODES, begin)
    trial.finish_job()


@case(
    "F30",
    "the disk is slow",
    fault="every fdatasync and fsync of musterd takes 500 ms, for 8 s; then rank 3 fails",
    expected="no lease ends; the failure is handled, only slower",
    features=_STATE,
    needs=("strace",),
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def disk_slow(trial: Trial) -> None:
    trial.start_job(keeps_state=True)
    tracer = trial.slow_or_break_disk("fdatasync,fsync:delay_enter=500000")
    trial.hold(8.0)
    trial.expect_undisturbed()
    trial.survives_failure("recover")
    trial.finish_job()
    tracer.signal(signal.SIGTERM)


@case(
    "F37-state",
    "two daemons on one state directory",
    fault="a second musterd with another port and the same --state-dir",
    expected="it exits and names the directory; the job does not notice",
    detects="until it has exited",
    goals=Goals(detect_ms=100),
    features=_STATE,
)
def second_on_state(trial: Trial) -> None:
    job = trial.prepare_job()
    state = job.keep_state()
    job.start()
    begin = now()
    flags = ["--listen=127.0.0.1:0", f"--state-dir={state}"]
    second = trial.start_helper(trial.cluster.daemon, trial.tools.musterd, *flags)
    code = second.wait()
    trial.note("detect", begin, now())
    trial.expect(code not in (0, 128 + signal.SIGABRT), f"the second musterd exited with {code}")
    trial.expect(str(state) in second.last_words(), f"the second musterd said: {second.last_words()}")
    trial.expect_undisturbed()
    trial.finish_job()


def _fill(file: Path) -> None:
    """Writes until the disk is full."""
    try:
        with open(file, "wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
    except OSError:
        pass


def _overwrite(file: Path) -> None:
    """The last bytes of each page: SQLite fills its pages from the end."""
    with open(file, "r+b") as journal:
        for position in range(4096 - 64, file.stat().st_size, 4096):
            journal.seek(position)
            journal.write(bytes(range(64)))
