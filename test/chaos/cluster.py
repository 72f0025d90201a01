"""Hosts: network namespaces with an address, a name and a cable of their own, all on one switch.

    switch (bridge) -- daemon 10.78.0.100
                    -- node1  10.78.0.1
                    -- node2  10.78.0.2 ...

The cable's end at the switch is what is pulled, so that neither side's kernel hears of it, as with a real switch.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

from processes import Program

_DEVICE = "eth0"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class Host:
    """One machine of the cluster."""

    def __init__(self, name: str, address: str):
        self.name = name
        self.address = address
        self._cable = f"to-{name}"
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", self._cable, "type", "veth", "peer", "name", _DEVICE, "netns", name)
        _run("ip", "link", "set", self._cable, "master", "switch", "up")
        _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", _DEVICE)
        _run("ip", "-n", name, "link", "set", _DEVICE, "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def start(self, what: str, argv: Sequence[str], env: dict[str, str], **more) -> Program:
        """Starts a program on this host; its pid is the program's own."""
        return Program(what, [*self.inside(), *argv], env, **more)

    def has_address(self, address: str) -> None:
        """Gives it one more."""
        _run("ip", "-n", self.name, "addr", "add", f"{address}/24", "dev", _DEVICE)

    def run(self, *argv: str) -> None:
        """Runs a command on this host to its end; a failure is an error of the harness."""
        _run(*self.inside(), *argv)

    def processes(self) -> list[int]:
        found = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True)
        return [int(pid) for pid in found.stdout.split()]

    def pull_cable(self) -> None:
        _run("ip", "link", "set", self._cable, "down")

    def plug_cable(self) -> None:
        _run("ip", "link", "set", self._cable, "up")

    def lose_power(self) -> None:
        """Everything ends at once, and nothing more reaches the network."""
        self.pull_cable()
        self.kill_all()

    def reboot(self) -> None:
        """Everything ends, nobody hears of it, and the kernel that is there afterwards knows of no connection."""
        self.pull_cable()
        self.run("ss", "-K", "-t", "state", "connected")
        self.kill_all()
        self.plug_cable()

    def remove(self) -> None:
        # The cable first: the kernel removes it some time after the namespace.
        self.kill_all()
        _run("ip", "link", "del", self._cable)
        _run("ip", "netns", "del", self.name)

    def kill_all(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def deaf_to(self, address: str) -> None:
        """Packets from `address` do not arrive here; those to it still leave."""
        self.run("iptables", "-A", "INPUT", "-s", address, "-j", "DROP")

    def lose_packets(self, share: float) -> None:
        """Of what arrives here."""
        self.run("iptables", "-A", "INPUT", "-m", "statistic", "--mode", "random", "--probability", str(share),
                 "-j", "DROP")

    def refuse(self, address: str) -> None:
        """What comes from `address` is answered with a reset, as by a firewall that rejects: a connection breaks, and
        a new one is refused. Resets themselves pass, so that both ends can be told."""
        self.run("iptables", "-A", "INPUT", "-s", address, "-p", "tcp", "!", "--tcp-flags", "RST", "RST",
                 "-j", "REJECT", "--reject-with", "tcp-reset")

    def hear_all(self) -> None:
        """Ends deaf_to(), refuse() and lose_packets()."""
        self.run("iptables", "-F", "INPUT")

    def limit_bandwidth(self, rate: str) -> None:
        """Of what leaves this host."""
        shaper = ["tbf", "rate", rate, "burst", "4kb", "latency", "400ms"]
        self.run("tc", "qdisc", "add", "dev", _DEVICE, "root", *shaper)

    def break_connections_with(self, address: str) -> None:
        """Both ends of every TCP connection with `address` get a reset, as from a middlebox."""
        self.run("ss", "-K", "dst", address)

    def inside(self) -> list[str]:
        """A command that executes its arguments on this host."""
        # Not `ip netns exec`, which would hide the control groups behind a fresh /sys.
        return ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--uts",
                "sh", "-c", 'hostname "$0" && exec "$@"', self.name]


class Cluster:
    """The daemon's host and `size` nodes. To be closed, which ends what still runs on them."""

    def __init__(self, size: int):
        _run("ip", "link", "add", "switch", "type", "bridge")
        _run("ip", "link", "set", "switch", "up")
        self.daemon = Host("daemon", "10.78.0.100")
        self.nodes = [Host(f"node{i}", f"10.78.0.{i}") for i in range(1, size + 1)]

    @property
    def hosts(self) -> list[Host]:
        return [self.daemon, *self.nodes]

    def close(self) -> None:
        for host in self.hosts:
            host.remove()
        _run("ip", "link", "del", "switch")
