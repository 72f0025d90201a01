"""A Slurm cluster: slurmctld where commands are typed, and a slurmd on each of several hosts, which are network
namespaces (test/chaos/cluster.py). Without munge, accounting and control groups, which a test has no use for.
A signal to a step reaches its agents and not their workers, as with the control groups that clusters have."""

import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

from cluster import Host
from isolation import SCRATCH
from processes import Program, wait_for

_LOGIN = "10.78.0.254"
_CONFIG = """\
ClusterName=test
SlurmctldHost={login_name}({login})
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=5
MinJobAge=300
JobRequeue=1
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP PriorityTier=1
PartitionName=cancelled Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=CANCEL
PartitionName=graced Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=CANCEL GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
"""


class Cluster:
    """Runs once it is made; inside isolation.enter(), with which all of it ends."""

    def __init__(self, size: int, path: str):
        self.folder = Path(SCRATCH)
        for command in (["link", "add", "switch", "type", "bridge"], ["addr", "add", f"{_LOGIN}/24", "dev", "switch"],
                        ["link", "set", "switch", "up"]):
            subprocess.run(["ip", *command], check=True)
        self.hosts = [Host(f"n{i}", f"10.78.0.{i}") for i in range(1, size + 1)]
        names = "".join(f"{host.address} {host.name}\n" for host in self.hosts)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{_LOGIN} login\n{names}")
        # In this mount namespace alone.
        subprocess.run(["mount", "--bind", self.folder / "hosts", "/etc/hosts"], check=True)
        config = self.folder / "slurm.conf"
        config.write_text(_CONFIG.format(login=_LOGIN, login_name=socket.gethostname(), folder=self.folder, nodes="\n".join(
            f"NodeName={host.name} NodeAddr={host.address} NodeHostname={host.name} CPUs=4 RealMemory=1000 State=UNKNOWN"
            for host in self.hosts)))
        (self.folder / "home").mkdir()
        self.environment = {"PATH": f"{path}:{os.environ['PATH']}:/usr/sbin", "SLURM_CONF": str(config), "LANG": "C.UTF-8",
                            "HOME": str(self.folder / "home"), "TMPDIR": str(self.folder)}
        self.run("muster", "token", "new")
        (self.folder / "controller").mkdir()
        self._daemons = [self._start("slurmctld", ["slurmctld", "-D", "-f", str(config)])]
        for host in self.hosts:
            (self.folder / host.name).mkdir()
            self.start_slurmd(host)
        self.await_idle()

    def _start(self, name: str, argv: list[str]) -> Program:
        with open(self.folder / f"{name}.log", "wb") as log:
            return Program(name, argv, self.environment, stdout=log, stderr=log)

    def start_slurmd(self, host: Host) -> None:
        # Not by `ip netns exec`, which hides the control groups that slurmd looks for.
        self._daemons.append(self._start(
            f"slurmd-{host.name}",
            ["nsenter", f"--net=/run/netns/{host.name}", "slurmd", "-D", "-N", host.name, "-f", self.environment["SLURM_CONF"]]))

    @contextmanager
    def hangs(self):
        """Slurmctld answers nobody until then, and then all that have asked."""
        self._daemons[0].signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._daemons[0].signal(signal.SIGCONT)

    def start(self, *argv: str) -> Program:
        """What is typed and not waited for."""
        return Program(argv[0], argv, self.environment)

    def await_idle(self) -> None:
        wait_for(lambda: self.states() == {"idle"}, lambda: f"nodes are {self.states()}: {self.logs()}")

    def clear(self) -> None:
        """Of what a case that failed has left."""
        self.run("scancel", f"--user={os.getuid()}", check=False)

    def states(self) -> set[str]:
        seen = self.run("sinfo", "--noheader", "--Node", "--format=%T", check=False)
        return set(seen.stdout.split())

    def logs(self) -> str:
        return "; ".join(line for log in self.folder.glob("slurm*.log") for line in log.read_text().splitlines()[-2:])

    def run(self, *argv: str, check: bool = True, **more) -> subprocess.CompletedProcess:
        """What is typed where jobs are started from, to its end."""
        return subprocess.run(argv, env=self.environment | more.pop("env", {}), capture_output=True, text=True, check=check,
                              timeout=60, cwd=self.folder, stdin=subprocess.DEVNULL, **more)
