"""One job on one cluster: a daemon, agents, and their workers."""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from cluster import Cluster, Host
from marks import Mark, read_marks
from processes import PATIENCE_S, Program, children, is_alive, runs, thread_count, wait_for
from timeline import Event, Timeline, read_events
from tools import Tools

PORT = 29400
HTTP_PORT = 9400


class Agent:
    """A `muster run` on a host, with a folder of its own for its event log and its workers' marks."""

    def __init__(self, name: str, host: Host, folder: Path, stranger: bool):
        self.name = name
        self.host = host
        self.folder = folder
        self.stranger = stranger  # Of another job; this job's timeline knows nothing of it.
        self.program: Program  # Set once by Job.start_agent().

    def events(self) -> list[Event]:
        return read_events(self.name, self.folder / "events.json")

    def marks(self) -> list[Mark]:
        return read_marks(self.name, self.folder)

    def living_workers(self) -> list[Mark]:
        return [mark for mark in self.marks() if mark.alive]


class Job:
    """The job "chaos" of `cluster`'s nodes. `endpoint` is where agents are sent; at first the daemon's address."""

    def __init__(
        self,
        tools: Tools,
        cluster: Cluster,
        folder: Path,
        nnodes: str = "",  # By default all of the cluster's.
        nproc: int = 2,
        max_restarts: int = 3,
        flags: Sequence[str] = (),
        worker_env: dict[str, str] | None = None,
        stubborn: Collection[str] = (),  # Agents whose workers do not end by SIGTERM, ever: no timeout is longer.
    ):
        self.cluster = cluster
        self.agents: dict[str, Agent] = {}
        self.daemon: Program | None = None
        self.daemon_flags: list[str] = []
        self.first_serving = 0  # The process of the first daemon that served.
        self.endpoint = f"{cluster.daemon.address}:{PORT}"
        self.flags = [
            f"--nnodes={nnodes or len(cluster.nodes)}",
            f"--nproc-per-node={nproc}",
            f"--max-restarts={max_restarts}",
            "--rdzv-id=chaos",
            "--log-level=info",
            *flags,
        ]
        self._tools = tools
        self._folder = folder
        self._worker_env = worker_env or {}
        self._stubborn = stubborn
        self.token = folder / "token"
        self.environment = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(folder),
            "MUSTER_TOKEN_FILE": str(self.token),
            "OMP_NUM_THREADS": "1",
            "CHAOS_FINISH": str(folder / "finish"),
        }

        subprocess.run([tools.muster, "token", "new", self.token], check=True, stdout=subprocess.DEVNULL)

    def start_daemon(self, env: dict[str, str] | None = None, wait: bool = True, **more) -> Program:
        """Starts musterd, and waits until agents can connect."""
        ready, write_end = os.pipe()
        listen = f"--listen={self.cluster.daemon.address}:{PORT}"
        argv = [self._tools.musterd, listen, f"--http={HTTP_PORT}", f"--ready-fd={write_end}", *self.daemon_flags]
        environment = {**self.environment, **(env or {})}
        daemon = self.cluster.daemon.start("musterd", argv, environment, pass_fds=[write_end], **more)
        os.close(write_end)
        with os.fdopen(ready) as announcement:
            said = announcement.readline() if wait and select.select([ready], [], [], PATIENCE_S)[0] else ""
        if wait and not said:
            raise RuntimeError(f"musterd did not start: {daemon.last_words()}")
        self.daemon = daemon
        if wait and not self.first_serving:
            self.first_serving = self.serving()
        return daemon

    def daemon_processes(self) -> list[int]:
        """Those of musterd that live: the one that was started, and what it starts of its own, also when that outlives
        it."""
        if self.daemon is None:
            return []
        main = [self.daemon.pid] if self.daemon.running() else []
        of_main = [child for pid in main for child in children(pid)]
        same_program = [pid for pid in self.cluster.daemon.processes() if runs(pid, self._tools.musterd)]
        return list(dict.fromkeys([*main, *of_main, *same_program]))

    def serving(self) -> int:
        """The process of musterd that serves: the only one that gRPC gives threads. It may be the one that was started,
        or a child that the one that was started watches over."""
        processes = self.daemon_processes()
        if not processes:
            raise RuntimeError(f"musterd has ended; it said last: {self.daemon.last_words() if self.daemon else ''}")
        return max(processes, key=thread_count)

    def kill_daemon(self) -> None:
        """Everything that musterd is, so that nobody starts it again."""
        assert self.daemon is not None
        # The restarter first: it must not see the death of the process that it would restart.
        for pid in self.daemon_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.daemon.wait()

    def crash_daemon(self) -> None:
        """Kills the process that serves. Where that is the one that was started, it is started again here."""
        assert self.daemon is not None
        victim = self.serving() if self.daemon.running() else self.daemon.pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if victim == self.daemon.pid:
            self.daemon.wait()
            self.start_daemon()
            return
        wait_for(lambda: not is_alive(victim), "the daemon's process does not die of SIGKILL")
        wait_for(lambda: any(thread_count(pid) > 1 for pid in self.daemon_processes()),
                 lambda: f"musterd does not start its daemon again; it said last: {self.daemon.last_words()}")

    def keep_state(self) -> Path:
        """From now on the daemon is started with a state directory."""
        directory = self._folder / "state"
        directory.mkdir()
        self.daemon_flags.append(f"--state-dir={directory}")
        return directory

    def start_agent(
        self,
        host: Host,
        name: str = "",  # By default the host's.
        flags: Sequence[str] = (),
        env: dict[str, str] | None = None,
        prefix: Sequence[str] = (),  # A command that executes its arguments.
        meet: Sequence[str] | None = None,  # Instead of --rdzv-endpoint.
        stranger: bool = False,
        **more,
    ) -> Agent:
        """Starts an agent of this job, or of another if it is a stranger."""
        agent = Agent(name or host.name, host, self._folder / (name or host.name), stranger)
        agent.folder.mkdir()
        argv = [
            *prefix,
            *(self._tools.muster, "run"),
            *self.flags,
            *(meet or [f"--rdzv-endpoint={self.endpoint}"]),
            f"--event-log={agent.folder}/events.json",
            *flags,
            *("--no-python", self._tools.worker),
        ]
        habit = {"CHAOS_IGNORE_TERM": "1"} if agent.name in self._stubborn else {}
        environment = {
            **self.environment, "CHAOS_DIR": str(agent.folder), **self._worker_env, **habit, **(env or {}),
        }
        agent.program = host.start(f"agent {agent.name}", argv, environment, **more)
        self.agents[agent.name] = agent
        return agent

    def start(self) -> None:
        """A daemon, an agent on each node, and all workers of the first round running."""
        self.start_daemon()
        for host in self.cluster.nodes:
            self.start_agent(host)
        self.wait_running()

    def timeline(self) -> Timeline:
        ours = [agent for agent in self.agents.values() if not agent.stranger]
        return Timeline(
            [event for agent in ours for event in agent.events()],
            [mark for agent in ours for mark in agent.marks()],
        )

    def wait_running(
        self, agents: Collection[str] | None = None, after_round: int = -1, seconds: float = PATIENCE_S
    ) -> int:
        """Waits until every rank of a round later than `after_round` runs on exactly `agents`; returns that round."""
        names = set(agents or (agent.name for agent in self.agents.values() if not agent.stranger))
        return wait_for(
            lambda: self.timeline().running(names, after_round),
            lambda: f"no round after {after_round} has all its workers running on {', '.join(sorted(names))}; "
            + self.last_words(),
            seconds,
        )

    def worker(self, rank: int) -> Mark:
        """The living worker with this rank."""
        found = [mark for mark in self.timeline().marks if mark.rank == rank and mark.alive and not mark.escaped]
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} processes with rank {rank} are alive, not one")
        return found[0]

    def workers_finish(self) -> None:
        """All workers, also those that start later, exit with 0."""
        (self._folder / "finish").touch()

    def last_words(self) -> str:
        return "; ".join(f"{agent.name}: {agent.program.last_words(1)}" for agent in self.agents.values())
