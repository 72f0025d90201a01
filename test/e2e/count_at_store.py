"""Counts itself in the workers' store, as PyTorch 1.13 does, and waits for the others; then rank 1 tries it as a
stranger, from an address that the job does not have."""
import os
import socket
import struct
import subprocess

store = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def text(value):
    return struct.pack("<Q", len(value)) + value


def answer(peer, length):
    received = b""
    while len(received) < length:
        more = peer.recv(length - len(received))
        if not more:
            return None
        received += more
    return received


def add(peer, key):  # ADD, 3
    peer.sendall(b"\3" + text(key) + struct.pack("<q", 1))
    return answer(peer, 8)


peer = socket.create_connection(store, timeout=30)
(count,) = struct.unpack("<q", add(peer, b"init/"))
if count == size:
    peer.sendall(b"\0" + text(b"all") + text(b"here"))  # SET, 0
peer.sendall(b"\5" + struct.pack("<Q", 1) + text(b"all"))  # WAIT, 5
assert answer(peer, 1) == b"\0"

stranger = ""
if rank == 1:
    subprocess.run(["ip", "addr", "add", "10.99.0.3/24", "dev", "to_first"], check=True)
    other = socket.create_connection(store, timeout=30, source_address=("10.99.0.3", 0))
    try:
        stranger = ", stranger served" if add(other, b"init/") else ", stranger turned away"
    except OSError:  # reset, as it had written already
        stranger = ", stranger turned away"
print("rank %d of %d, group rank %s, store at %s, Gloo on %s%s" % (
    rank, size, os.environ["GROUP_RANK"], store[0], os.environ.get("GLOO_SOCKET_IFNAME"), stranger))
