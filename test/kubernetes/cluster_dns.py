"""The cluster's DNS: dnsmasq at the kubelet's address, with the records that headless Services have."""

import signal
import subprocess
import time

from pod import KUBELET, World
from processes import Program

# From a pod's start to its record in DNS: until then there is none, or that of the pod before it.
_LAG_S = 2.0


class ClusterDns:
    """Answers from the start."""

    def __init__(self, world: World, number: int):
        self._folder = world.folder / f"dns-{number}"
        self._folder.mkdir()
        self._due: list[tuple[float, str, str]] = []
        self._server = Program("dnsmasq", [
            "dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--no-poll", f"--listen-address={KUBELET}",
            "--bind-interfaces", "--user=root", "--pid-file=", "--log-facility=-", f"--local=/{world.domain}/",
            f"--hostsdir={self._folder}"], world.environment, stderr=subprocess.DEVNULL)

    def publish(self, name: str, address: str) -> None:
        """In a while, in place of what the name had before."""
        self._due.append((time.monotonic() + _LAG_S, name, address))

    def update(self) -> None:
        """To be called from time to time."""
        due = [record for record in self._due if record[0] <= time.monotonic()]
        for record in due:
            self._due.remove(record)
            (self._folder / record[1]).write_text(f"{record[2]} {record[1]}\n")
        if due:
            # It learns what is added by itself, and what has gone when it is told to read again.
            self._server.signal(signal.SIGHUP)

    def close(self) -> None:
        self._server.signal(signal.SIGKILL)
        self._server.wait()
