"""The attacks of a host on a job that runs: two nodes, a daemon, and a third host that is hostile.

usage: attacks.py [--json FILE] [--write-docs] [ATTACK...]
       attacks.py --list

While and after each attack: nothing was answered, no run id was told, the daemon took at most 16 MiB more memory, the
job's nodes have not been out of touch, and who has the token is served. Of those that begin with T the host has the
token; it is answered then, and the daemon may take what its limits (rendezvous/core/values/limits.h) add up to.

Exit codes: 0 when every attack was as expected, 1 when one was not, 2 for a wrong command line or a missing binary, 77
when this machine does not let us make network namespaces.
"""

import argparse
import contextlib
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "chaos"))

import isolation
from cluster import Host
from job import PORT
from processes import resident_kib
from tools import Tools
from trial import Trial

_SKIPPED = 77
_MOST_MIB = 16
_PATIENCE_S = 120.0
_ATTACKER = str(Path(__file__).resolve().parent / "attacker.py")
_DOCS = Path("docs/security.md")
_BEGIN, _END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"

# What each of them does. The numbers are those of the list of bad input that Muster's tests go by.
ATTACKS = {
    "B1": "HTTP/1.1 in plain text, 200 times",
    "B2": "a ClientHello, then the end, 200 times",
    "B3": "4 KiB at random, 200 times",
    "B4": "HTTP/2's preface in plain text, then nothing, 1,000 connections",
    "B4 TLS": "a ClientHello, then nothing, 4,000 connections",
    "B4 silent": "nothing at all, 4,000 connections",
    "B5": "a wrong preface, or a part of one, 200 times",
    "B6": "headers of 10 KB, and meaningless ones",
    "B7": "32 MB of padded integers in CONTINUATION frames",
    "B8": "a header of 4 GiB",
    "B9": "100,000 calls that are opened and reset",
    "B10": "10,000 pings",
    "B11": "10,000 SETTINGS frames",
    "B12": "WINDOW_UPDATE of 0 and beyond the maximum",
    "B13": "100,000 frames of no data",
    "B14": "a message of 4 GiB",
    "B15": "a compressed message that is 500 times as large",
    "B16": "a message that is cut off",
    "B17": "an unknown call",
    "B18": "another content type",
    "B19": "deadlines of zero, years and nonsense",
    "B20": "1 MB of metadata, and some that is not ASCII",
    "B21": "every call, over TLS without a certificate, 200 connections",
    "B23": "every call, with a certificate that has expired",
    "B24": "every call, with one that is not valid yet",
    "B25": "every call, with one of another token",
    "B28": "every call, with a chain of 1,000 certificates",
    "B29": "every call, over TLS 1.0, 1.1 and 1.2",
    "B39": "100 death notices of made-up sessions, and 100 knocks",
    "B40": "the bytes of an owner's tool, replayed 70 times",
    "store": "c10d's requests to the workers' store",
    "tunnel store": "as store, at a tunnel's port",
    "tunnel B4 TLS": "as B4 TLS",
    "tunnel B21": "as B21",
    "tunnel B25": "as B25",
    "T1": "100,000 calls that are opened and reset",
    "T2": "20,480 calls over 160 connections that send no message",
    "T3": "128 messages of 4 MiB, each but for its last byte",
    "T4": "5,120 answers of 100 KB that are not taken",
    "T5": "5,000 calls at once, five times",
    "T6": "B6 to B20 by one who is let in",
    "T7": "calls without method, authority, or anything, 200,000 times over each of four connections",
}

# What the daemon may grow by, in MiB; the sum of what counts there.
_MIB = {
    "T1": 64,  # 256 calls of a connection; and what 100,000 refusals wait for that nobody reads.
    "T2": 400,  # 16,384 calls of 24 KiB.
    "T3": 320,  # 64 messages of 4 MiB, and windows of 16 KiB.
    "T4": 384,  # 256 MiB of answers, and the calls.
    "T5": 160,  # 256 calls of a connection, freed one after the other.
    "T6": 64,
    "T7": 256,  # What gRPC takes in a quarter of a second, or in two, as the daemon may be held up.
}
# These are made on a job with --worker-store=tunnel, at the port of the agent that has the store; it is that agent's
# memory that is looked at.
_TUNNEL = "tunnel "

# The hostile host's address, and others that it has.
_HOSTILE = ["10.78.0.66", *(f"10.78.0.{i}" for i in range(128, 191))]


@dataclass
class Finding:
    attack: str
    connections: int = 0
    read: int = 0
    grown_kib: int = 0
    status_ms: float = 0.0
    usual_ms: float = 0.0
    problems: list[str] = field(default_factory=list)


class Field:
    """The hosts, the job, and what the attacker has got hold of."""

    def __init__(self, tools: Tools, tunnel: bool, attackers_cpu: int, samples: int):
        self.tunnel = tunnel
        self.samples = samples
        self.attackers_cpu = attackers_cpu
        self.trial = Trial(tools, size=2)
        self.hostile = Host("hostile", _HOSTILE[0])
        for address in _HOSTILE[1:]:
            self.hostile.has_address(address)
        # A token holder is let in, and from then on so is everybody else on the same host.
        self.insider = Host("insider", "10.78.0.67")
        self.loot = self.trial.folder / "loot"
        self.loot.mkdir()
        self._tools = tools
        self.job = self.trial.start_job(flags=["--worker-store=tunnel"] if tunnel else [])
        self._make_identities()
        self._capture()
        self.store = self._workers_store()
        self._tool("kv", "set", "large", "x" * 100_000, "--rdzv-id=chaos")

    def close(self) -> None:
        self.trial.close()
        self.hostile.remove()
        self.insider.remove()

    def victim(self) -> int:
        """The process that the attacker connects to, or is near to."""
        if not self.tunnel:
            return self.job.serving()
        has_store = self.job.cluster.nodes[0]
        return next(agent.program.pid for agent in self.job.agents.values() if agent.host is has_store)

    def status_ms(self, meanwhile: Callable[[], bool] | None = None) -> float:
        """How long it takes who has the token to be told of the job: the median of a few, or of all while `meanwhile`."""
        took: list[float] = []
        while not took or (len(took) < self.samples if meanwhile is None else meanwhile()):
            before = time.monotonic()
            said = self._status(f"{self.job.endpoint}")
            took.append((time.monotonic() - before) * 1000)
            if "chaos" not in said:
                raise RuntimeError(f"`muster status` does not show the job: {said}")
        return statistics.median(took)

    def complaints(self) -> int:
        """What the agents have said so far about the rendezvous."""
        words = ("out of touch", "reconnected", "lost")
        return sum(1 for agent in self.job.agents.values() for line in agent.program.lines
                   if any(word in line.text for word in words))

    def _status(self, endpoint: str) -> str:
        return self._tool("status", endpoint=endpoint)

    def _tool(self, *words: str, endpoint: str = "") -> str:
        """What a tool says that is run on a node."""
        token = self.trial.folder / "token"
        node = self.job.cluster.nodes[0]
        command = ["ip", "netns", "exec", node.name, self._tools.muster, *words, f"--token-file={token}",
                   f"--rdzv-endpoint={endpoint or self.job.endpoint}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    def _make_identities(self) -> None:
        own = str(self.trial.folder / "token")
        foreign = str(self.trial.folder / "foreign")
        subprocess.run([self._tools.muster, "token", "new", foreign], check=True, stdout=subprocess.DEVNULL)
        # The first two as whoever had an old copy of a certificate would have them.
        for name, token, hours in (("expired", own, "-72"), ("early", own, "72"), ("foreign", foreign, "0"),
                                   ("long", foreign, "0"), ("owner", own, "0")):
            folder = self.loot / name
            folder.mkdir()
            subprocess.run([self._tools.identity, token, folder, hours], check=True, stdout=subprocess.DEVNULL)
        chain = self.loot / "long" / "certificate.pem"
        chain.write_text(chain.read_text() + (self.loot / "long" / "roots.pem").read_text() * 999)

    def _capture(self) -> None:
        """What a tool says to the daemon, as somebody between them sees it."""
        between = "10.78.0.200"
        subprocess.run(["ip", "addr", "add", f"{between}/24", "dev", "switch"], check=True)
        door = socket.create_server((between, 0))
        said = bytearray()

        def carry() -> None:
            client = door.accept()[0]
            daemon = socket.create_connection((self.job.cluster.daemon.address, PORT))
            while True:
                for end in select.select([client, daemon], [], [])[0]:
                    chunk = end.recv(1 << 16)
                    if not chunk:
                        client.close()
                        daemon.close()
                        return
                    if end is client:
                        said.extend(chunk)
                    (daemon if end is client else client).sendall(chunk)

        carrier = threading.Thread(target=carry, daemon=True)
        carrier.start()
        answer = self._status(f"{between}:{door.getsockname()[1]}")
        carrier.join()
        door.close()
        subprocess.run(["ip", "addr", "del", f"{between}/24", "dev", "switch"], check=True)
        if "chaos" not in answer or b"chaos" in said or len(said) < 600:
            raise RuntimeError(f"nothing was captured that is worth replaying: {len(said)} bytes, {answer}")
        (self.loot / "capture").write_bytes(said)

    def _workers_store(self) -> tuple[str, int]:
        """Where the workers' store listens."""
        node = self.job.cluster.nodes[0]
        listed = subprocess.run(["ip", "netns", "exec", node.name, "ss", "-Hltn"], capture_output=True, text=True,
                                check=True).stdout
        for line in listed.splitlines():
            host, _, port = line.split()[3].rpartition(":")
            if host.startswith("10.78.0."):
                return host, int(port)
        raise RuntimeError(f"no workers' store on {node.name}: {listed}")


def _run(field_: Field, attack: str) -> Finding:
    """Makes the attack. "control" is B21 with the owner's own certificate, which must be answered, and be told the run
    id: so that it would be seen."""
    finding = Finding(attack)
    daemon, victim = field_.job.serving(), field_.victim()
    finding.usual_ms = field_.status_ms()
    before_kib, complaints = resident_kib(victim), field_.complaints()
    at_store = field_.tunnel or attack == "store"
    host, port = field_.store if at_store else (field_.job.cluster.daemon.address, PORT)
    inside = attack == "control" or attack in _MIB
    attacker_host = field_.insider if inside else field_.hostile
    command = ["taskset", "-c", str(field_.attackers_cpu), "nsenter", f"--net=/run/netns/{attacker_host.name}",
               sys.executable, "-W", "ignore", _ATTACKER, attack.removeprefix(_TUNNEL), host, str(port), str(field_.loot),
               *([attacker_host.address] if inside else _HOSTILE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdin is not None and attacker.stdout is not None
        until = time.monotonic() + _PATIENCE_S

        def was_made(wait_s: float) -> bool:
            return bool(select.select([attacker.stdout], [], [], max(0.0, wait_s))[0])

        try:
            # Who has the token is served while it is made; how fast, while one host goes on with it.
            field_.status_ms(lambda: not was_made(0) and time.monotonic() < until)
            finding.status_ms = field_.status_ms()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            finding.problems.append(f"who has the token is not served: {error}")
        made = was_made(until - time.monotonic())
        if field_.job.daemon is None or not field_.job.daemon.running() or field_.job.serving() != daemon:
            finding.problems.append("the daemon has ended")
        else:
            finding.grown_kib = max(0, resident_kib(victim) - before_kib)
        said = []
        with contextlib.suppress(subprocess.TimeoutExpired):
            said = attacker.communicate(timeout=_PATIENCE_S if made else 0)[0].splitlines()
        did = json.loads(said[1]) if len(said) == 2 else {}
        attacker.kill()
    # The machine's own pace drifts by more than many an attack costs: so the attack is compared with before and after.
    if not finding.problems:
        finding.usual_ms = (finding.usual_ms + field_.status_ms()) / 2
    if not did:
        finding.problems.append("the attacker came to no end")
    finding.connections, finding.read = did.get("connections", 0), did.get("read", 0)
    if did.get("connections", 0) == 0:
        finding.problems.append("the attacker could not connect at all, and nothing was shown")
    for what, said in (("answered", "a call was answered"), ("leaked", "the run id was told")):
        if attack == "control" and not did.get(what):
            finding.problems.append(f"of who has the token it was not seen that {said}")
        if attack != "control" and attack not in _MIB and did.get(what):
            finding.problems.append(said)
    if finding.grown_kib > _MIB.get(attack, _MOST_MIB) << 10:
        finding.problems.append(f"{'the agent' if field_.tunnel else 'the daemon'} grew by {finding.grown_kib / 1024:.1f} MiB")
    if field_.complaints() > complaints:
        finding.problems.append(f"the job was disturbed: {field_.job.last_words()}")
    if len(field_.job.timeline().marks) != 4:
        finding.problems.append("workers were started again")
    return finding


def _table(findings: list[Finding]) -> str:
    lines = ["| attack | | memory, MiB | `muster status`, ms |",
             "|---|---|---|---|"]
    for each in findings:
        verdict = "; ".join(each.problems) if each.problems else f"{each.status_ms:.1f} ({each.usual_ms:.1f})"
        lines.append(f"| {each.attack} | {ATTACKS[each.attack]} | +{each.grown_kib / 1024:.1f} | {verdict} |")
    return "\n".join(lines) + "\n"


def _make(field_: Field, attacks: list[str], findings: list[Finding]) -> bool:
    """Makes the attacks, one after the other. False when none can be made, as what they would show is not seen."""
    try:
        start_kib = resident_kib(field_.victim())
        # Who has the token is answered by the daemon, not by a tunnel.
        if not field_.tunnel and (control := _run(field_, "control")).problems:
            print("; ".join(control.problems))
            return False
        for attack in attacks:
            finding = _run(field_, attack)
            findings.append(finding)
            print(f"{attack:13} {'; '.join(finding.problems) or 'ok':50} +{finding.grown_kib / 1024:.1f} MiB, status "
                  f"{finding.status_ms:.1f} ms (without {finding.usual_ms:.1f}), {finding.connections} connections, "
                  f"{finding.read} bytes read", flush=True)
        print(f"in all {'the agent' if field_.tunnel else 'the daemon'} grew from {start_kib / 1024:.1f} to "
              f"{resident_kib(field_.victim()) / 1024:.1f} MiB")
        field_.job.workers_finish()
        for agent in field_.job.agents.values():
            if agent.program.wait() != 0:
                print(f"agent {agent.name} failed: {agent.program.last_words()}")
                findings[-1].problems.append("the job did not succeed")
    finally:
        field_.close()
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="attacks.sh", description="Attacks a job that runs from a host without a token.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--write-docs", action="store_true", help=f"write the table of {_DOCS}")
    parser.add_argument("--list", action="store_true", help="print the attacks and make none")
    parser.add_argument("--samples", type=int, default=31, metavar="N", help="answers to the token holder that are timed")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="such as B9 (default: all)")
    arguments = parser.parse_args()
    if arguments.list:
        print(*(f"{name}: {what}" for name, what in ATTACKS.items()), sep="\n")
        return 0
    for name in arguments.attacks:
        if name not in ATTACKS:
            print(f"attacks.sh: there is no attack '{name}'; --list shows them", file=sys.stderr)
            return 2
    tools = Tools.find()
    if tools.missing():
        print(f"attacks.sh: not built: {', '.join(tools.missing())}", file=sys.stderr)
        return 2
    if (reason := isolation.enter()) is not None:
        print(f"attacks.sh: no network namespaces here: {reason}", file=sys.stderr)
        return _SKIPPED
    wanted = arguments.attacks or list(ATTACKS)
    findings: list[Finding] = []
    # The attacker's host has a processor of its own, as a real one has: what is measured is what others lose.
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cpus[:-1] or cpus)
    for tunnel in (False, True):
        attacks = [attack for attack in wanted if attack.startswith(_TUNNEL) == tunnel]
        if attacks and not _make(Field(tools, tunnel, cpus[-1], arguments.samples), attacks, findings):
            return 1
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in findings], indent=1) + "\n")
    if arguments.write_docs:
        before, _, rest = _DOCS.read_text().partition(_BEGIN)
        _DOCS.write_text(before + _BEGIN + _table(findings) + _END + rest.partition(_END)[2])
    return 1 if any(each.problems for each in findings) else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
