"""Calls of the daemon's store that are given up at a bad moment: F49."""

import signal
import subprocess
import sys
from pathlib import Path

from case import case
from cluster import Host
from job import PORT
from processes import Program, wait_for
from trial import Trial

_STORE_CALL = str(Path(__file__).parent.parent / "store_call.py")
# How long the disk blocks: long enough for everything that must happen while an answer is held.
_DISK_S = 3


@case(
    "F49",
    "a waiting call is cancelled when its answer is held for the disk",
    fault=f"a Wait and a Get wait for a key, another client's Set brings it, every fdatasync of musterd takes "
    f"{_DISK_S} s; in between both calls are cancelled",
    expected="others are served, a failure is handled, and musterd ends on SIGTERM",
    features=("state-dir",),
    needs=("strace",),
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def cancelled(trial: Trial) -> None:
    _given_up(trial, signal.SIGTERM)


@case(
    "F49-reset",
    "a waiting client's connection is reset when its answer is held for the disk",
    fault="as F49; in between the connections of both are reset",
    expected="as F49",
    features=("state-dir",),
    needs=("strace",),
    most_repeats=5,
    shows="rank 3 on host node2 exited with code 3",
)
def reset(trial: Trial) -> None:
    _given_up(trial, signal.SIGUSR1)


def _given_up(trial: Trial, how: int) -> None:
    job = trial.start_job(keeps_state=True)
    here, there = trial.cluster.nodes[:2]
    waiting = [_call(trial, here, method, "brought") for method in ("wait", "get")]
    tracer = trial.slow_or_break_disk(f"fdatasync,fsync:delay_enter={_DISK_S * 1000000}")
    _call(trial, there, "set", "brought")
    # Within this time the daemon gets the Set, and the disk does not.
    trial.hold(1.0)
    for call in waiting:
        trial.expect(call.said("answered") is None, f"the fault was not injected: {call.last_words()}")
        call.signal(how)
    later = _call(trial, there, "check", "brought")
    wait_for(lambda: later.said("answered"), "the daemon answers nobody any more: not a later Check", 3 * _DISK_S)
    tracer.signal(signal.SIGTERM)
    tracer.wait()
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()
    assert job.daemon is not None
    job.daemon.signal(signal.SIGTERM)
    trial.expect(job.daemon.wait(10) == 0, "musterd did not end with 0 on SIGTERM")


def _call(trial: Trial, host: Host, method: str, key: str) -> Program:
    make = [trial.tools.identity, trial.folder / "token", trial.folder]
    server = subprocess.run(make, check=True, capture_output=True, text=True).stdout.strip()
    identity = (str(trial.folder), server)
    argv = [sys.executable, _STORE_CALL, trial.cluster.daemon.address, str(PORT), "chaos", method, key, *identity]
    call = trial.start_helper(host, *argv)
    call.wait_for_line("asked")
    return call
