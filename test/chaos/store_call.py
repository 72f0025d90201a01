"""One call to a job's store in the daemon (proto/store.proto), that is given up in the middle when it is told to.

usage: store_call.py HOST PORT RUN_ID wait|get|set|check KEY IDENTITY SERVER

IDENTITY is a folder with roots.pem, certificate.pem and key.pem, SERVER the name that the daemon proves.

gRPC is spoken by hand (HTTP/2: RFC 9113; header fields: RFC 7541, section 6.2.2), so that it is known exactly what the
daemon sees. Says "asked" on stderr when the daemon has the call, and "answered" or "failed" when it has ended. "wait"
and "get" wait for the key without end.

SIGTERM cancels the call and leaves the connection open; SIGUSR1 resets the connection.
"""

import os
import signal
import socket
import ssl
import struct
import sys

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_CANCEL = 8
_FOR_EVER_MS = 1 << 30


def _varint(number: int) -> bytes:
    text = b""
    while number > 127:
        text, number = text + bytes([number & 127 | 128]), number >> 7
    return text + bytes([number])


def _field(number: int, value: bytes | int) -> bytes:
    """A field of a message, as Protobuf writes it: wire type 0 or 2."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _request(method: str, run_id: str, key: str) -> bytes:
    more = {"get": _field(3, _FOR_EVER_MS), "set": _field(3, b"value")}.get(method, b"")
    return _field(1, run_id.encode()) + _field(2, key.encode()) + more


class Connection:
    """Calls on one connection, which has streams 1, 3, 5..."""

    def __init__(self, host: str, port: int, identity: str, server: str):
        tls = ssl.create_default_context(cafile=f"{identity}/roots.pem")
        tls.load_cert_chain(f"{identity}/certificate.pem", f"{identity}/key.pem")
        tls.set_alpn_protocols(["h2"])
        self._socket = tls.wrap_socket(socket.create_connection((host, port)), server_hostname=server)
        self._authority = f"{host}:{port}"
        self._got_data: set[int] = set()
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._send(_SETTINGS, 0, b"")

    def ask(self, stream: int, method: str, run_id: str, key: str) -> None:
        fields = {":method": "POST", ":scheme": "https", ":path": f"/muster.store.v1.Store/{method.capitalize()}",
                  ":authority": self._authority, "content-type": "application/grpc", "te": "trailers"}
        block = b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                         for name, value in fields.items())
        self._send(_HEADERS, stream, block, _END_HEADERS)
        message = _request(method, run_id, key)
        self._send(_DATA, stream, struct.pack(">BI", 0, len(message)) + message, _END_STREAM)

    def answered(self, stream: int) -> bool:
        """Waits for the call's end. Whether there was an answer: what fails ends without a message."""
        while True:
            kind, flags, number, _ = self._receive()
            if number == stream and kind == _DATA:
                self._got_data.add(stream)
            over = kind == _RST_STREAM or kind == _HEADERS and flags & _END_STREAM
            if kind == _GOAWAY or number == stream and over:
                return stream in self._got_data

    def cancel(self, stream: int) -> None:
        self._send(_RST_STREAM, stream, struct.pack(">I", _CANCEL))

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _send(self, kind: int, stream: int, payload: bytes, flags: int = 0) -> None:
        self._socket.sendall(struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload)

    def _receive(self) -> tuple[int, int, int, bytes]:
        """The next frame. Those that every peer has to answer are answered."""
        header = self._read(9)
        kind, flags, stream = struct.unpack(">BBI", header[3:])
        payload = self._read(int.from_bytes(header[:3], "big"))
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            self._send(kind, 0, payload if kind == _PING else b"", _ACK)
        return kind, flags, stream, payload

    def _read(self, size: int) -> bytes:
        text = b""
        while len(text) < size:
            piece = self._socket.recv(size - len(text))
            if not piece:
                raise ConnectionError("the daemon has closed the connection")
            text += piece
        return text


def _say(word: str) -> None:
    print(word, file=sys.stderr, flush=True)


def _reset_and_end(connection: Connection) -> None:
    connection.reset()
    os._exit(0)


def main() -> None:
    host, port, run_id, method, key, identity, server = sys.argv[1:]
    connection = Connection(host, int(port), identity, server)
    signal.signal(signal.SIGTERM, lambda *_: connection.cancel(1))
    signal.signal(signal.SIGUSR1, lambda *_: _reset_and_end(connection))
    connection.ask(1, method, run_id, key)
    if method in ("wait", "get"):
        # A later call on this connection is answered, so the daemon has handled the earlier one,
        # too.
        connection.ask(3, "check", run_id, key)
        connection.answered(3)
    _say("asked")
    try:
        _say("answered" if connection.answered(1) else "failed")
    except ConnectionError as error:
        _say(f"failed: {error}")
    signal.pause()  # The connection stays; whoever started this ends it.


if __name__ == "__main__":
    main()
