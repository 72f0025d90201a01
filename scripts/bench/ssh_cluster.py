"""Hosts with an sshd each, for the length of a benchmark: the network namespaces of test/e2e/ssh_hosts.sh."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tools

SCRIPT = "test/e2e/ssh_hosts.sh"
CONTROL_GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 10_000


class CannotRun(Exception):
    """Why there is no cluster, as a clause behind "it could not be measured: "."""


class Cluster:
    """Runs once it is made: node0, node1, ..., and the machine where commands are typed, which is none of them. To be
    closed; it also ends with this process, however that ends."""

    def __init__(self, hosts: int) -> None:
        missing = [name for name in ("ssh", "sshd", "ssh-keygen", "ip", "setpriv") if tools.peer(name) is None]
        if missing:
            raise CannotRun(f"{missing[0]} is not installed")
        if os.geteuid() != 0:
            raise CannotRun("network namespaces with an sshd in them take root")
        self.names = [f"node{i}" for i in range(hosts)]
        self.folder = Path(tempfile.mkdtemp(prefix="muster-hosts-"))
        # Where ssh keeps connections, with a path short enough for sockets.
        self.runtime = self.folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.environment = {**os.environ, "PATH": f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin",
                            "XDG_RUNTIME_DIR": str(self.runtime)}
        self.machines: list[subprocess.Popen] = []
        try:
            self.typed = self._start(["unshare", "--net", "sh", SCRIPT, str(hosts), str(self.folder), "MUSTER_BENCH=1"])
        except BaseException:
            self.close()
            raise

    def _start(self, command: list[str]) -> int:
        """A process that keeps a machine's namespaces, once it says that it is ready."""
        machine = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        self.machines.append(machine)
        if machine.stdout.readline().strip() != "ready":
            raise CannotRun("there can be no network namespaces with an sshd here")
        return machine.pid

    def command(self, words: list[str]) -> list[str]:
        """What runs a command on the machine where commands are typed."""
        return ["nsenter", "--target", str(self.typed), "--net", *words]

    def with_own_program(self, program: str) -> "OwnProgram":
        return OwnProgram(self, program)

    def forget_caches(self) -> None:
        """Hosts no longer have what was sent to them."""
        for name in self.names:
            shutil.rmtree(self.folder / f"{name}.home/.cache", ignore_errors=True)

    @contextlib.contextmanager
    def keeping_connections(self) -> Iterator[None]:
        """ssh keeps connections of whoever uses it, by its configuration."""
        config = self.folder / "ssh_config"
        usual = config.read_text()
        config.write_text("Host *\n  ControlMaster auto\n  ControlPersist 60\n"
                          f"  ControlPath {self.runtime}/%l-%C\n{usual}")
        try:
            yield
        finally:
            config.write_text(usual)

    def _end(self, name: str) -> None:
        """Whatever still runs on a host: connections that hosts keep to one another, and sshd's part in them."""
        with contextlib.suppress(OSError):
            network = os.readlink(f"/proc/{(self.folder / f'{name}.pid').read_text().strip()}/ns/net")
            if network == os.readlink("/proc/self/ns/net"):
                return  # it has ended, and another process has its number
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if os.readlink(process / "ns/net") == network:
                        os.kill(int(process.name), signal.SIGKILL)

    def close(self) -> None:
        for socket in filter(Path.is_socket, self.runtime.rglob("*")):
            subprocess.run(["ssh", "-S", str(socket), "-O", "exit", "any"], stderr=subprocess.DEVNULL, check=False)
        for name in self.names:
            self._end(name)
        for machine in reversed(self.machines):
            machine.kill()
            machine.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class OwnProgram:
    """A program on the machine where commands are typed, and on no host."""

    def __init__(self, cluster: Cluster, program: str) -> None:
        folder = cluster.folder / "typed"
        folder.mkdir()
        self.path = str(folder / Path(program).name)
        # A file system mounted for that machine alone.
        self.pid = cluster._start(cluster.command([
            "unshare", "--mount", "sh", "-c",
            'mount -t tmpfs tmpfs "$1" && cp "$2" "$1/" && echo ready && exec sleep infinity',
            "sh", str(folder), program]))

    def command(self, words: list[str]) -> list[str]:
        return ["nsenter", "--target", str(self.pid), "--net", "--mount", *words]


class OwnProcessors:
    """While this is entered, each host, and the machine where commands are typed, has no more than `share` of a
    processor: as if each were a machine with a processor of its own, that is so much slower."""

    def __init__(self, cluster: Cluster, share: float) -> None:
        self.cluster = cluster
        self.share = share
        self.folder = CONTROL_GROUPS / f"muster-bench-{os.getpid()}"

    def __enter__(self) -> "OwnProcessors":
        if not (CONTROL_GROUPS / "cpu.cfs_quota_us").exists() and not any(CONTROL_GROUPS.glob("*/cpu.cfs_quota_us")):
            raise CannotRun("there are no control groups for processors (version 1) here")
        self.folder.mkdir()
        for name in ("typed", *self.cluster.names):
            group = self.folder / name
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(int(self.share * PERIOD_US)))
        for name in self.cluster.names:
            (self.folder / name / "cgroup.procs").write_text((self.cluster.folder / f"{name}.sshd").read_text())
        return self

    def command(self, words: list[str]) -> list[str]:
        enter = ["sh", "-c", f'echo $$ >{self.folder}/typed/cgroup.procs && exec "$@"', "sh"]
        return [*enter, *self.cluster.command(words)]

    def __exit__(self, *_: object) -> None:
        for name in ("typed", *self.cluster.names):
            group = self.folder / name
            for pid in (group / "cgroup.procs").read_text().split():
                try:
                    (CONTROL_GROUPS / "cgroup.procs").write_text(pid)
                except OSError:
                    pass  # it has ended
            group.rmdir()
        self.folder.rmdir()
