"""A job that a batch script starts, which becomes `muster run`, as Slurm tells of it and its workers do."""

import os

from processes import wait_for

# Goes on where it was when it saved last. Each time that it is told to save is a line.
_WORKER = """\
trap 'echo $RANK >> {folder}/told; asked=1' TERM
echo $RANK $SLURMD_NODENAME $TORCHELASTIC_RUN_ID after $(test ! -e {folder}/saved || wc -l < {folder}/saved) >> {folder}/up
while test ! -e {folder}/go; do
  sleep 0.1 & wait
  test -z "$asked" || {{ sleep 1; echo $RANK >> {folder}/saved; exit 0; }}
done
"""


class BatchJob:
    """`muster run` in a batch script, which becomes it."""

    def __init__(self, cluster, *flags: str, nodes: int = 2, run: str = "exec muster run"):
        self.cluster, self.nodes = cluster, nodes
        self.folder = cluster.folder / f"batch{os.urandom(4).hex()}"
        self.folder.mkdir()
        (self.folder / "worker.sh").write_text(_WORKER.format(folder=self.folder))
        script = self.folder / "job.sh"
        script.write_text(f"#!/bin/sh\n{run} --no-python sh {self.folder}/worker.sh\n")
        self.id = cluster.run("sbatch", "--parsable", f"--nodes={nodes}", f"--output={self.folder}/out", "--open-mode=append",
                              *flags, str(script)).stdout.strip()

    def output(self) -> str:
        return self._read("out") + self.show()

    def _read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def up(self) -> list[str]:
        return self._read("up").splitlines()

    def saved(self) -> list[str]:
        return sorted(self._read("saved").split())

    def told(self) -> list[str]:
        return sorted(self._read("told").split())

    def show(self) -> str:
        return self.cluster.run("scontrol", "show", "job", self.id, check=False).stdout

    def await_up(self, times: int = 1) -> None:
        wait_for(lambda: len(self.up()) == times * self.nodes, self.output)

    def await_saved(self, seconds: float = 45) -> None:
        wait_for(lambda: self.saved() == [str(rank) for rank in range(self.nodes)], self.output, seconds=seconds)

    def await_state(self, state: str) -> None:
        wait_for(lambda: f"JobState={state} " in self.show(), self.output)

    def await_second_run(self) -> None:
        """It begins at once, and not after the two minutes for which Slurm holds a requeued job back."""

        def runs() -> bool:
            self.cluster.run("scontrol", "update", f"JobId={self.id}", "StartTime=now", check=False)
            return len(self.up()) == 2 * self.nodes

        wait_for(runs, self.output)

    def expect_exit_code(self, code: str) -> None:
        if f"ExitCode={code}" not in self.show().split():
            raise AssertionError(f"not {code}: {self.output()}")
