"""One repetition of one case: fresh hosts, one job, what was measured and what was not as expected."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import shown
from cluster import Cluster, Host
from isolation import SCRATCH
from job import Job
from processes import Program, TimedOut, living, now, reap_all, wait_for
from shown import Shown
from tools import Tools

NODES = ("node1", "node2", "node3")
# Most node faults are node3's. A job of ELASTIC nodes goes on without it.
SURVIVORS = NODES[:2]
ELASTIC = "2:3"
# For jobs whose workers leave processes that never exit: after a success, those would be waited
# for.
NO_LEFTOVERS = ("--leftovers=stop",)
# How long after a job's end one of its processes may still be seen (goal of the matrix, F7).
_ORPHAN_S = 1.0
_ADVERSARY = str(Path(__file__).parent / "adversary.py")


@dataclass
class Outcome:
    """What a repetition came to. `problems` is empty when all was as expected."""

    problems: list[str] = field(default_factory=list)
    figures_ms: dict[str, float] = field(default_factory=dict)
    shown: str = ""  # Why rounds ended, as who looked at the job was shown.
    overlap_ns: int = 0
    orphans: int = 0


class Trial:
    """What a case works with. To be closed."""

    def __init__(self, tools: Tools, size: int = 3):
        self.tools = tools
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH))
        self.outcome = Outcome()
        self.cluster = Cluster(size)
        self.job: Job
        self._before = set(living())
        self._shown: Shown | None = None
        self._trouble = ""  # That was seen of a rank.
        self._saw_all = False  # The daemon that was looked at has been there from the beginning.
        self._helpers: list[Program] = []

    # -- the usual course

    def start_job(self, keeps_state: bool = False, **options) -> Job:
        """The usual job: a daemon and an agent on each node, all workers running."""
        job = self.prepare_job(**options)
        if keeps_state:
            job.keep_state()
        job.start()
        return job

    def prepare_job(self, **options) -> Job:
        self.job = Job(self.tools, self.cluster, self.folder, **options)
        return self.job

    def start_helper(self, host: Host, *argv: str, **more) -> Program:
        """Starts a program that is part of the fault; it is killed at the end."""
        helper = host.start(argv[0], argv, dict(os.environ), **more)
        self._helpers.append(helper)
        return helper

    def start_adversary(self, host: Host, kind: str, target: Host, port: int, word: str = "") -> Program:
        """Starts a program of adversary.py and waits for `word`, by which it says that it has begun."""
        helper = self.start_helper(host, sys.executable, _ADVERSARY, kind, target.address, str(port))
        if word:
            helper.wait_for_line(word)
        return helper

    def slow_or_break_disk(self, how: str) -> Program:
        """Has strace do something to the system calls of the process that serves; `how` is as its --inject wants it."""
        strace = ["strace", "-f", "-o", "/dev/null", "-e", f"inject={how}", "-p", str(self.job.serving())]
        tracer = self.start_helper(self.cluster.daemon, *strace)
        tracer.wait_for_line("attached")
        return tracer

    def hold(self, seconds: float) -> None:
        """Lets a fault last. Not for waiting until something has happened."""
        time.sleep(seconds)

    def detected(self, agents: Collection[str], since: int) -> None:
        """Notes how long it took until all of `agents` knew that the round was over."""
        told = wait_for(lambda: self.job.timeline().all_told(agents, since), f"not told: {', '.join(agents)}")
        self.note("detect", since, told)

    def recovered(self, agents: Collection[str], since: int) -> int:
        """Waits for the round after the first on `agents`; notes how long it took until its last worker ran."""
        number = self.job.wait_running(agents, after_round=0)
        self.note("recover", since, self.job.timeline().started(number))
        return number

    def goes_on(self, agents: Collection[str], since: int, restarts: int, but: Collection[str] = ()) -> None:
        """The round ends and the next one runs on `agents`, after so many restarts; then the job succeeds."""
        self.detected(agents, since)
        self.recovered(agents, since)
        self.expect_restarts(restarts)
        self.finish_job(but=but)

    def daemon_comes_back(self) -> None:
        """Starts the daemon again, waits until every agent has reconnected, and notes how long that took."""
        begin = now()
        self.job.start_daemon()
        self.all_reconnect(begin)

    def daemon_crashes(self) -> None:
        """Kills the process that serves; it is started again at once. Notes how long it took until every agent has
        reconnected."""
        begin = now()
        self.job.crash_daemon()
        self.all_reconnect(begin)

    def all_reconnect(self, begin: int) -> None:
        """Waits until every agent has reconnected, and notes how long that took."""
        def all_back() -> int | None:
            timeline = self.job.timeline()
            back = [timeline.first("reconnected", name, begin) for name in self.job.agents]
            return max(event.ns for event in back if event) if all(back) else None

        back = wait_for(all_back, lambda: f"not every agent has reconnected; {self.job.last_words()}")
        self.note("recover", begin, back)

    def survives_failure(self, figure: str = "a later failure") -> None:
        """A rank's failure leads to the next round, as if nothing had been before. Notes how long that took."""
        begin = now()
        self.job.worker(3).command("exit 3")
        number = self.job.wait_running(after_round=0)
        self.note(figure, begin, self.job.timeline().started(number))
        self.expect_restarts(1)

    def finish_job(self, but: Collection[str] = ()) -> None:
        """Lets the workers end with 0; every agent, those in `but` aside, must exit with 0, too."""
        self.look()
        self.job.workers_finish()
        for agent in self.job.agents.values():
            if agent.name not in but:
                self.expect_exit(agent.name, 0)

    def look(self) -> None:
        """Looks at the job as it is now, by all that shows it, for check_shown()."""
        daemon = self.job.daemon
        if daemon is None or not daemon.running():
            return
        self._shown = shown.look(self.tools, self.job)
        self._saw_all = self.job.serving() == self.job.first_serving

    def sees_trouble(self, kind: str, what: str) -> None:
        """Waits until `what` is shown of a rank, by all that shows the job: an agent tells it with its next keep-alive."""
        lacks: list[str] = []

        def is_shown() -> bool:
            nonlocal lacks
            seen = shown.look(self.tools, self.job)
            lacks = shown.missing_trouble(seen, kind, what)
            self._trouble = next((each for each in shown.alerts(seen.job) if what in each), "")
            return not lacks

        wait_for(is_shown, lambda: f"'{what}' is not shown by {', '.join(lacks)}")

    def sees_no_trouble(self) -> None:
        """Waits until nothing is shown to be wrong with any rank."""
        wait_for(lambda: not shown.alerts(shown.look(self.tools, self.job).job), "a trouble that is over is shown")

    # -- what is expected

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.outcome.problems.append(otherwise)

    def expect_exit(self, agent: str, code: int) -> None:
        program = self.job.agents[agent].program
        found = program.wait()
        self.expect(found == code, f"agent {agent} exited with {found}, not {code}: {program.last_words()}")

    def expect_restarts(self, count: int) -> None:
        found = self.job.timeline().restarts()
        self.expect(found == count, f"TORCHELASTIC_RESTART_COUNT went to {found}, not {count}")

    def expect_undisturbed(self) -> None:
        """The first round's workers all run and no other round has been."""
        timeline = self.job.timeline()
        self.expect(timeline.rounds() == [0], f"workers ran in rounds {timeline.rounds()}, not in round 0 alone")
        dead = [mark.rank for mark in timeline.marks if not mark.alive]
        self.expect(not dead, f"ranks {dead} have ended")

    def expect_no_workers(self, agents: Collection[str]) -> None:
        """None of the workers of `agents` is alive."""
        ranks = sorted(mark.rank for name in agents for mark in self.job.agents[name].living_workers())
        self.expect(not ranks, f"ranks {ranks} of {', '.join(agents)} live on")

    def expect_told(self, agents: Collection[str], sentence: str) -> None:
        """Each of `agents` says `sentence` on its terminal."""
        for name in agents:
            program = self.job.agents[name].program
            try:
                program.wait_for_line(sentence, seconds=5.0)
            except TimedOut as error:
                self.expect(False, str(error))

    def check_shown(self, what: str | None, trouble: str) -> None:
        """What Case.shows and Case.trouble say, after the job's end."""
        if what is None:
            return
        if self._shown is None and self.job.daemon is not None and self.job.daemon.running():
            self.look()
        replay = shown.replayed(self.tools, self.job)
        # Success need not be reported.
        endings = [each for each in (shown.endings(self._shown.job) if self._shown else []) if each[0] != "succeeded"]
        self.outcome.shown = next((reason for _, reason in endings if what and what in reason), "")
        if what:
            lacks = shown.missing(self._shown, replay, what, self._saw_all)
            self.expect(not lacks, f"'{what}' is not shown by {', '.join(lacks)}, but {endings}")
        else:
            self.expect(not endings, f"shown is that rounds ended: {endings}")
        if trouble:
            self.expect(trouble in self._trouble, f"'{trouble}' was not seen, but '{self._trouble}'")
            self.expect(trouble in replay, f"'{trouble}' is not shown by `muster replay`")
            seen = self._trouble.replace(f"{self.folder}/", "")
            self.outcome.shown = f"{seen}; {self.outcome.shown or 'no round has ended'}"

    # -- figures

    def note(self, name: str, begin_ns: int, end_ns: int) -> None:
        self.outcome.figures_ms[name] = (end_ns - begin_ns) / 1e6

    # -- the end

    def check_invariants(self) -> None:
        """No two rounds' workers at a time, and nothing left behind once the agents are gone."""
        overlap = self.outcome.overlap_ns = self.job.timeline().overlap_ns()
        self.expect(overlap == 0, f"workers of two rounds ran together for {overlap} ns")
        for program in self._helpers:
            if program.running():
                program.signal(signal.SIGKILL)
                program.wait()
        if self.job.daemon_processes():
            self.job.kill_daemon()
        if any(agent.program.running() for agent in self.job.agents.values()):
            return  # The case failed before the job's end; what an agent still has is not left behind.
        deadline = now() + int(_ORPHAN_S * 1e9)
        while (left := self._left_behind()) and now() < deadline:
            time.sleep(0.01)
        self.outcome.orphans = len(left)
        self.expect(not left, f"left behind: {', '.join(left.values())}")

    def close(self) -> None:
        """Ends what still runs. What a case leaves running it has complained about."""
        self.cluster.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        reap_all()

    def _left_behind(self) -> dict[int, str]:
        return {pid: command for pid, command in living().items() if pid not in self._before}
