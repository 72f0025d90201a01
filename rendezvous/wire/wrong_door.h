// What is said at a port to somebody who takes it for a secured one when it is not, or the other
// way around, before the connection is closed. Each is an answer in his own protocol, which
// client/grpc_error.cc recognizes.
#pragma once

#include <string_view>

namespace muster::rendezvous {

// The first byte of a connection that begins with TLS: a record of type handshake (RFC 8446, 5.1).
// No opcode of c10d's store has this number.
inline constexpr char kFirstOfTls = 0x16;

// To TLS, where there is none: a fatal alert, insufficient_security (RFC 8446, 6.2).
inline constexpr std::string_view kNoTlsHere("\x15\x03\x03\x00\x02\x02\x47", 7);

// To HTTP/2 without TLS, where a token is asked for: a client fails at once, as it does at any
// server that knows HTTP/1 only.
inline constexpr std::string_view kTokenIsAskedFor =
    "HTTP/1.1 426 Upgrade Required\r\n"
    "Upgrade: TLS/1.3\r\n"
    "Connection: Upgrade, close\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 62\r\n"
    "\r\n"
    "This is a rendezvous of Muster's. It speaks TLS with a token.\n";

}  // namespace muster::rendezvous
