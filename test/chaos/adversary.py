"""Programs that make trouble from another host, as parts of a fault.

usage: adversary.py flood|stranger|garbage|sink|source HOST PORT

Each says one word on stderr once its trouble has begun.
"""

import os
import socket
import struct
import sys
import time

_CONNECTIONS = 1000
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def flood(host: str, port: int) -> None:
    """Opens connections that say nothing and stay."""
    held = []
    print("flooding", file=sys.stderr, flush=True)
    for _ in range(_CONNECTIONS):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((host, port))
        held.append(connection)
    time.sleep(1000)


def stranger(host: str, port: int) -> None:
    """Has the port, and speaks something else than what is expected there."""
    listening = socket.create_server((host, port))
    print("ready", file=sys.stderr, flush=True)
    while True:
        connection = listening.accept()[0]
        connection.sendall(b"220 this is not what you are looking for\r\n")
        connection.close()


def garbage(host: str, port: int) -> None:
    """Three hundred connections, each with something that no agent would send; then ends."""
    settings = _frame(4, 0, b"")
    pieces = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500),  # The beginning of a TLS handshake.
        os.urandom(4096),
        _PREFACE[:10],
        _PREFACE,
        _PREFACE + settings + _frame(1, 1, os.urandom(64), flags=4),  # Headers that cannot be decoded.
        _PREFACE + settings + _frame(0, 0, b"", length=0xFFFFFF),
        _PREFACE + settings + _frame(8, 0, struct.pack(">I", 0)),  # A window update of nothing.
        _PREFACE + settings + _frame(6, 0, bytes(8)) * 1000,  # Pings.
        b"",
    ]
    for i in range(300):
        with socket.create_connection((host, port), timeout=5) as connection:
            try:
                connection.sendall(pieces[i % len(pieces)])
            except OSError:
                pass  # It has been closed on us, as it should.


def _frame(kind: int, stream: int, payload: bytes, flags: int = 0, length: int | None = None) -> bytes:
    """An HTTP/2 frame (RFC 9113, section 4.1); `length` is what it claims to have."""
    size = struct.pack(">I", len(payload) if length is None else length)[1:]
    return size + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def sink(host: str, port: int) -> None:
    """Takes all that source() sends."""
    listening = socket.create_server((host, port))
    print("ready", file=sys.stderr, flush=True)
    connection = listening.accept()[0]
    while connection.recv(1 << 16):
        pass


def source(host: str, port: int) -> None:
    """Sends as much as the link takes."""
    connection = socket.create_connection((host, port))
    connection.sendall(bytes(1 << 16))
    print("sending", file=sys.stderr, flush=True)
    while True:
        connection.sendall(bytes(1 << 16))


if __name__ == "__main__":
    troubles = {trouble.__name__: trouble for trouble in (flood, stranger, garbage, sink, source)}
    troubles[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
