"""A musterd, and an etcd to hold its journal against: fresh, on loopback, for as long as a context lasts."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tools

# A thousand agents and some spare, on both ends.
_DESCRIPTORS = 4096
# The same for ten thousand: the daemon reserves a quarter for connections that are not agents' yet.
MANY_DESCRIPTORS = 16_384
_READY_WITHIN_S = 30


@dataclass(frozen=True)
class Server:
    endpoint: str
    pid: int
    token_file: str = ""  # Empty: connections are in plaintext.
    page: str = ""  # Where its metrics are, if it was asked for them.

    def flags(self) -> list[str]:
        """Where load generators find it."""
        return [f"--endpoint={self.endpoint}", *([f"--token-file={self.token_file}"] if self.token_file else [])]

    def serving(self) -> int:
        """The process that serves, of one with a state directory; the other is its keeper."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="utf-8").split()
        return int(children[0])


def allow_descriptors(count: int = _DESCRIPTORS) -> None:
    """For this process and those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        sys.exit(f"bench: so many agents need {count} file descriptors, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


def _fail(who: str, log: Path) -> None:
    sys.exit(f"bench: {who} did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


@contextlib.contextmanager
def _started(command: list[str], log: Path, **how: object) -> Iterator[subprocess.Popen]:
    """The process, which has ended by the end of the context."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **how)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def musterd(state_dir: Path | None = None, secure: bool = True, etcd_at: str = "", listen: str = "127.0.0.1:0",
            page: bool = False, stands_by_for: Server | None = None) -> Iterator[Server]:
    """Without `state_dir` or `etcd_at` it remembers nothing, and no journal is written. `stands_by_for`: the one that
    leads at the same etcd, whose token it has."""
    if etcd_at and listen.endswith(":0"):
        listen = f"{listen.removesuffix('0')}{_free_ports(1)[0]}"  # agents have to name the port of each that stands by
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        log = Path(folder) / "musterd.log"
        token_file = f"{folder}/token" if secure else ""
        if stands_by_for:
            token_file = stands_by_for.token_file
        elif secure:
            tools.run([tools.built("launcher/muster"), "token", "new", token_file])
        ready, write_end = os.pipe()
        # No jobs are left when the context ends; if the load generator failed and one is, it is not
        # waited for.
        command = [tools.built("rendezvous/musterd"), f"--listen={listen}", f"--ready-fd={write_end}",
                   "--drain-timeout=0", f"--token-file={token_file}" if token_file else "--insecure"]
        command += [f"--state-dir={state_dir}"] if state_dir else []
        command += [f"--state=etcd://{etcd_at}"] if etcd_at else []
        pages = f"127.0.0.1:{_free_ports(1)[0]}" if page else ""
        command += [f"--http={pages}"] if page else []
        with _started(command, log, pass_fds=[write_end]) as process:
            os.close(write_end)
            with os.fdopen(ready) as announcement:
                port = announcement.readline().strip()
            if not port:
                _fail("musterd", log)
            if etcd_at and not stands_by_for:
                _await_connections(int(port))
            yield Server(f"127.0.0.1:{port}", process.pid, token_file, pages)


def _await_connections(port: int) -> None:
    """One that takes turns with others is ready before it leads, and refuses connections until then."""
    end = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)
    sys.exit("bench: musterd does not lead")


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has now, for a program that cannot take one by itself."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def etcd(data_dir: Path) -> Iterator[Server]:
    """A cluster of one, with its defaults; ready when it tells systemd so (sd_notify(3))."""
    clients, peers = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
    command = ["etcd", f"--data-dir={data_dir}",
               f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}",
               f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
               f"--initial-cluster=default={peers}", "--logger=zap", "--log-level=error"]
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(f"{folder}/notify")
        notices.settimeout(_READY_WITHIN_S)
        log = Path(folder) / "etcd.log"
        with _started(command, log, env={**os.environ, "NOTIFY_SOCKET": f"{folder}/notify"}) as process:
            try:
                notices.recv(4096)
            except TimeoutError:
                _fail("etcd", log)
            yield Server(clients.removeprefix("http://"), process.pid)
