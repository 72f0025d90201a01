"""A Slurm cluster of this machine alone, for the length of a benchmark: slurmctld and slurmd in a temporary folder."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import tools

# Without anything optional that costs a launch time: no authentication, no accounting, no control
# groups, no CPU binding. On free ports of loopback.
CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/node.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MaxTasksPerNode=2048
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
READY_S = 20.0
END_S = 10.0


class CannotRun(Exception):
    """Why there is no cluster, as a clause behind "srun could not be measured: "."""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


class Cluster:
    """Runs once it is made. To be closed."""

    def __init__(self) -> None:
        missing = [name for name in ("srun", "slurmctld", "slurmd") if tools.peer(name) is None]
        if missing:
            raise CannotRun(f"{missing[0]} is not installed")
        if os.geteuid() != 0:
            raise CannotRun("slurmd wants to be root")
        self.folder = Path(tempfile.mkdtemp(prefix="muster-slurm-"))
        self.daemons: list[subprocess.Popen] = []
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        for name in ("controller", "node"):
            (self.folder / name).mkdir()
        controller_port, node_port = _free_ports(2)
        Path(self.environment["SLURM_CONF"]).write_text(CONFIG.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, controller_port=controller_port,
            node_port=node_port, processors=os.cpu_count()))
        try:
            self._start("slurmctld")
            self._start("slurmd")
            self.wait_until_idle()
        except BaseException:
            self.close()
            raise

    def _start(self, daemon: str) -> None:
        with open(self.folder / f"{daemon}.log", "wb") as log:
            self.daemons.append(subprocess.Popen(
                [daemon, "-D", "-f", self.environment["SLURM_CONF"]], stdout=log, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, env={**os.environ, **self.environment}))

    def wait_until_idle(self) -> None:
        """Until the last job has been cleaned up. Slurm tells nobody when a node is idle: it has to be asked."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            seen = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, check=False,
                                  env={**os.environ, **self.environment})
            if seen.stdout.strip() == "idle":
                return
            if any(daemon.poll() is not None for daemon in self.daemons):
                break
            time.sleep(0.1)
        logs = [(self.folder / f"{name}.log").read_text().strip() for name in ("slurmctld", "slurmd")]
        words = [line for log in logs for line in log.splitlines()[-1:]]
        raise CannotRun(f"its node was not idle within {READY_S:g} s: {'; '.join(words)}")

    def close(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(END_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
