"""What the ranks of a job ask the store for while torch.distributed starts with gloo: made up, and checked."""

import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import tools

_PREFIX = "//worker/attempt_0/default_pg"
_BARRIER = f"{_PREFIX}/store_based_barrier_key:1"
_SEQUENCE = f"{_PREFIX}/0/SEQ_NUM_STORE_KEY"
_ADDRESS_BYTES = 136  # of one peer, in gloo's 2022 version
_RANK = "import torch.distributed as d; d.init_process_group('gloo')"

# A request: operation, key, and the number to add, or the number of bytes to set.
Step = tuple[str, str, int]


def traffic(ranks: int) -> list[list[Step]]:
    """What each rank sends, in order, as PyTorch 1.13 does it. A "gather" is where all have come before any goes on."""
    def read(key: str, waits: int) -> list[Step]:
        return [("wait", key, 0)] * waits + [("get", key, 0)]

    everyone = []
    for rank in range(ranks):
        steps = [("add", "init/", 1), ("set", f"{_PREFIX}/0/0/rank_{rank}", len(socket.gethostname()))]
        for other in range(rank):
            steps += read(f"{_PREFIX}/0/0/rank_{other}", waits=1)
        steps.append(("set", f"{_PREFIX}/0/0/{rank}", _ADDRESS_BYTES * (ranks - 1)))
        for other in range(ranks):
            if other != rank:
                steps += read(f"{_PREFIX}/0/0/{other}", waits=2)
        steps += [("add", _BARRIER, 1), ("gather", "-", 0), ("add", _BARRIER, 0)]
        steps += read(_SEQUENCE, waits=2) if rank > 0 else [("set", _SEQUENCE, 8)]
        everyone.append(steps)
    return everyone


def write(ranks: int, file: Path) -> int:
    """The traffic as `store_client replay` reads it. Returns how many requests it has."""
    everyone = traffic(ranks)
    file.write_text("".join(f"{rank} {op} {key} {number}\n"
                            for rank, steps in enumerate(everyone) for op, key, number in steps))
    return sum(op != "gather" for steps in everyone for op, _, _ in steps)


def check(ranks: int, store_port: int) -> None:
    """Lets so many real ranks start over the store at `store_port`, and exits if they do not send traffic()."""
    recorded = sorted(map(_without_polls, _record(ranks, store_port)))
    # A rank that reads the barrier's counter too early reads it again: how often differs each time.
    expected = sorted([step for step in steps if step[0] != "gather"] for steps in traffic(ranks))
    if recorded == expected:
        return
    for mine, real in zip(expected, recorded):
        for made, sent in zip(mine, real):
            if made != sent:
                sys.exit(f"bench: gloo's ranks do not send what store_gloo.py says: {sent} instead of {made}")
    sys.exit(f"bench: {len(recorded)} of gloo's {ranks} ranks sent more or less than store_gloo.py says")


def _without_polls(steps: list[Step]) -> list[Step]:
    poll = ("add", _BARRIER, 0)
    return [step for before, step in zip([None, *steps], steps) if not before == step == poll]


def _record(ranks: int, store_port: int) -> list[list[Step]]:
    """What real ranks send, taken down by somebody between them and the store."""
    streams: list[bytearray] = []
    threads: list[threading.Thread] = []

    def copy(source: socket.socket, sink: socket.socket, stream: bytearray | None) -> None:
        while data := source.recv(1 << 16):
            if stream is not None:
                stream += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
        if stream is None:
            source.close()

    def accept() -> None:
        for _ in range(2 * ranks):  # Each rank has a connection that it uses and one that stays idle.
            client, _ = listener.accept()
            store = socket.create_connection(("127.0.0.1", store_port))
            for end in (client, store):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            streams.append(bytearray())
            for arguments in ((client, store, streams[-1]), (store, client, None)):
                threads.append(threading.Thread(target=copy, args=arguments, daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        common = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": str(listener.getsockname()[1]), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                  "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
        processes = [subprocess.Popen([tools.PYTHON, "-c", _RANK], env={**common, "RANK": str(rank)},
                                      stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
        for process in processes:
            _, said = process.communicate(timeout=120)
            if process.returncode != 0:
                sys.exit(f"bench: torch.distributed did not start over a store that records: {said[-2000:]}")
        acceptor.join(timeout=60)
    for thread in threads:
        thread.join(timeout=60)
    return [_decode(stream) for stream in streams if stream]


def _decode(stream: bytearray) -> list[Step]:
    """The requests of one connection, in the numbering of PyTorch 1.13."""
    at = 0

    def number() -> int:
        nonlocal at
        at += 8
        return struct.unpack_from("<q", stream, at - 8)[0]

    def string() -> bytes:
        nonlocal at
        length = number()
        at += length
        return bytes(stream[at - length:at])

    steps = []
    while at < len(stream):
        op = stream[at]
        at += 1
        if op == 0:
            steps.append(("set", string().decode(), len(string())))
        elif op == 2:
            steps.append(("get", string().decode(), 0))
        elif op == 3:
            steps.append(("add", string().decode(), number()))
        elif op == 5:
            steps += [("wait", string().decode(), 0) for _ in range(number())]
        else:
            sys.exit(f"bench: a rank sent request {op}, which store_gloo.py does not know")
    return steps
