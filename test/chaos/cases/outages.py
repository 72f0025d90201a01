"""Outages of the rendezvous: F24."""

from case import Goals, case
from trial import Trial

_STATE = ("state-dir",)


@case(
    "F24",
    "the daemon is killed",
    fault="`kill -9` to the daemon's process, which is started again at once",
    expected="no worker notices; the agents reconnect; the next failure is handled as before",
    recovers="until all agents have reconnected, from the kill on",
    goals=Goals(recover_ms=3000),
    torchrun="its store lives in an agent: all other agents exit after 1.6 s",
    features=_STATE,
)
def killed(trial: Trial) -> None:
    job = trial.prepare_job()
    job.keep_state()
    job.start()
    trial.daemon_crashes()
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()


@case(
    "F24-long",
    "the daemon is away for a minute",
    fault="`kill -9` to musterd, its restart 60 s later",
    expected="as F24",
    recovers="until all agents have reconnected, from musterd's start on",
    goals=Goals(recover_ms=3000),
    torchrun="as F24",
    features=_STATE,
    most_repeats=2,
)
def away_for_long(trial: Trial) -> None:
    job = trial.prepare_job()
    job.keep_state()
    job.start()
    job.kill_daemon()
    trial.hold(60.0)
    trial.daemon_comes_back()
    trial.expect_undisturbed()
    trial.survives_failure()
    trial.finish_job()
