"""A worker without PyTorch that meets the others at their store, as PyTorch 1.13 does: for tests of the store's way.

usage: store_worker.py COMMAND...
  meet KEY      waits until every rank has come here
  value SIZE    rank 0 sets a value of so many bytes, and every rank gets it
  ports         looks at what listens on this host for others, and whether any of it speaks to who has no token
  capture       begins to take down what is on the network
  seen          whether any of that is a request of ours, a key or the value
  fail RANK     that rank dies in the first attempt; the others go on
  wait FILE     waits until there is a file
What was seen is printed in one line."""
import os
import signal
import socket
import struct
import sys
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
STORE = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
LOOPBACK = ("0100007F", "00000000000000000000000001000000")


def text(value):
    return struct.pack("<Q", len(value)) + value


def receive(peer, length):
    received = bytearray()
    while len(received) < length:
        more = peer.recv(min(length - len(received), 1 << 20))
        if not more:
            raise ConnectionError("the store has ended the connection")
        received += more
    return bytes(received)


def add(peer, key):
    peer.sendall(b"\3" + text(key) + struct.pack("<q", 1))
    return struct.unpack("<q", receive(peer, 8))[0]


def wait(peer, key):
    peer.sendall(b"\5" + struct.pack("<Q", 1) + text(key))
    assert receive(peer, 1) == b"\0"


def get(peer, key):
    wait(peer, key)
    peer.sendall(b"\2" + text(key))
    return receive(peer, struct.unpack("<Q", receive(peer, 8))[0])


def meet(peer, key):
    if add(peer, key + b"/count") == SIZE:
        peer.sendall(b"\0" + text(key + b"/all") + text(b"here"))
    wait(peer, key + b"/all")


def listening():
    """Addresses of this network namespace, but for loopback, at which somebody listens."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                address, port = line.split()[1].split(":")
                if line.split()[3] == "0A" and address not in LOOPBACK:
                    # Words of 32 bits in the machine's byte order.
                    raw = b"".join(struct.pack("<I", int(address[i:i + 8], 16)) for i in range(0, len(address), 8))
                    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
                    found.add((socket.inet_ntop(family, raw), int(port, 16)))
    return sorted(found)


def speaks(address):
    """Whether it answers c10d's request with a number."""
    with socket.create_connection(address, timeout=30) as stranger:
        stranger.settimeout(30)
        try:
            stranger.sendall(b"\3" + text(b"init/") + struct.pack("<q", 1))
            said = b""
            while len(said) < 8:
                more = stranger.recv(8)
                if not more:
                    return False
                said += more
            return said[:1] != b"\x15" and said[:4] != b"HTTP"  # An alert of TLS.
        except ConnectionError:
            return False


def capture():
    """Every packet of this network namespace; they are read later."""
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sniffer.setblocking(False)
    return sniffer


def seen(sniffer):
    """Whether a packet that was not on loopback has a key or the value in it."""
    packets = []
    while True:
        try:
            packet, address = sniffer.recvfrom(1 << 17)
        except BlockingIOError:
            break
        if address[0] != "lo":
            packets.append(packet)
    assert len(packets) > 10, "nothing was captured"
    ours = (b"seen/count", b"v" * 100)
    return "something" if any(word in packet for packet in packets for word in ours) else "nothing"


def main():
    peer = socket.create_connection(STORE, timeout=120)
    said = ["rank %d of %d, store at %s" % (RANK, SIZE, STORE[0])]
    arguments = iter(sys.argv[1:])
    for command in arguments:
        if command == "meet":
            meet(peer, next(arguments).encode())
        elif command == "value":
            size = int(next(arguments))
            if RANK == 0:
                peer.sendall(b"\0" + text(b"value") + text(b"v" * size))
            assert get(peer, b"value") == b"v" * size
            said.append("value of %d bytes" % size)
        elif command == "ports":
            open_ones = listening()
            assert all(address != STORE for address in open_ones), open_ones
            talkative = [address for address in open_ones if speaks(address)]
            said.append("%d open, %d of them to strangers" % (len(open_ones), len(talkative)))
        elif command == "capture":
            sniffer = capture()
        elif command == "seen":
            said.append("the network has seen %s of it" % seen(sniffer))
        elif command == "fail":
            rank = int(next(arguments))
            attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
            said.append("attempt " + attempt)
            if rank == RANK and attempt == "0":
                os.kill(os.getpid(), signal.SIGKILL)
        elif command == "wait":
            print(", ".join(said) + ", waits", flush=True)
            file = next(arguments)
            while not os.path.exists(file):
                time.sleep(0.02)
    print(", ".join(said), flush=True)


main()
