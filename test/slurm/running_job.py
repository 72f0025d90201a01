"""A job of three nodes that runs until it is told to end, in a Slurm allocation, and its processes."""

import os
import signal
import subprocess
from pathlib import Path

from processes import children, stat_fields, wait_for

# One line for each worker that runs: its rank, which round it is in, itself, and its agent.
_WORKER = """\
folder={folder}
trap 'sleep 1; echo $RANK >> {folder}/saved; exit 0' TERM
trap 'exit 3' USR2
{more}
echo $RANK $TORCHELASTIC_RESTART_COUNT $$ $PPID >> {folder}/up
while test ! -e {folder}/go; do
  sleep 0.1
  test -z "$asked" || {{ sleep 1; echo $RANK >> {folder}/saved; exit 0; }}
done
"""


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def lives(pid: int) -> bool:
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in "ZX"


class RunningJob:
    """`muster run` as `how` starts it: behind srun, or without in what salloc runs."""

    def __init__(self, cluster, how: list[str], *flags: str, nodes: int = 3, more: str = ""):
        self.folder, self.nodes = cluster.folder / f"job{os.urandom(4).hex()}", nodes
        self.folder.mkdir()
        worker = self.folder / "worker.sh"
        worker.write_text(_WORKER.format(folder=self.folder, more=more))
        with open(self.folder / "out", "wb") as out:
            self.process = subprocess.Popen([*how, "muster", "run", *flags, "--no-python", "sh", str(worker)], stdout=out,
                                            stderr=out, stdin=subprocess.DEVNULL, cwd=self.folder,
                                            env=cluster.environment, start_new_session=True)
        self.await_round(0)

    def output(self) -> str:
        return (self.folder / "out").read_text()

    def _lines(self, name: str) -> list[list[int]]:
        path = self.folder / name
        return [[int(word) for word in line.split()] for line in path.read_text().splitlines()] if path.exists() else []

    def saved(self) -> list[int]:
        return sorted(rank for [rank] in self._lines("saved"))

    def workers(self, restart: int) -> dict[int, tuple[int, int]]:
        """By rank: the worker and its agent, after so many restarts."""
        return {rank: (worker, agent) for rank, count, worker, agent in self._lines("up") if count == restart}

    def starts(self) -> int:
        """How many workers have begun, in all rounds together."""
        return len(self._lines("up"))

    def await_round(self, restart: int) -> None:
        wait_for(lambda: len(self.workers(restart)) == self.nodes,
                 lambda: f"workers after {restart} restarts: {self.workers(restart)}: {self.output()}")

    def finish(self) -> int:
        """The workers succeed; the exit code."""
        (self.folder / "go").touch()
        return self.exit_code()

    def exit_code(self) -> int:
        wait_for(lambda: self.process.poll() is not None, lambda: f"it does not end: {self.output()}", seconds=40)
        return self.process.returncode

    def typed(self) -> int:
        """`muster run` itself: what salloc runs."""
        [typed] = children(self.process.pid)
        return typed

    def interrupt(self) -> None:
        """Ctrl-C in salloc's shell, which reaches what the shell runs, and not salloc."""
        os.kill(self.typed(), signal.SIGINT)

    def await_nothing_left(self) -> None:
        everybody = {process for _, _, worker, agent in self._lines("up") for process in (worker, agent)}
        wait_for(lambda: not any(lives(process) for process in everybody), lambda: f"left behind: {self.output()}")
