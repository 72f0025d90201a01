// Tells by its first byte what a connection to the rendezvous's port is for. The first bytes of all
// protocols on the port differ.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "rendezvous/wire/liveness_probe.h"
#include "rendezvous/wire/tcpstore_codec.h"

namespace muster::rendezvous {

// What a port sends, before closing the connection, to a client that expects TLS where there is
// none, or the other way around. Each is an answer in the client's own protocol, which
// daemon_channel.cc recognizes.

// The first byte of TLS: a record of type handshake (RFC 8446, 5.1). No opcode of c10d's store has
// this number.
inline constexpr char kFirstOfTls = 0x16;

// To a TLS client, where TLS is not spoken: a fatal alert, insufficient_security (RFC 8446, 6.2).
inline constexpr std::string_view kNoTlsHere("\x15\x03\x03\x00\x02\x02\x47", 7);

// To HTTP/2 without TLS, where a token is required: the client fails at once, as with any server
// that only speaks HTTP/1.
inline constexpr std::string_view kTokenIsAskedFor =
    "HTTP/1.1 426 Upgrade Required\r\n"
    "Upgrade: TLS/1.3\r\n"
    "Connection: Upgrade, close\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 62\r\n"
    "\r\n"
    "This is a rendezvous of Muster's. It speaks TLS with a token.\n";

// The first byte of HTTP/2's connection preface, "PRI" (RFC 9113, 3.4).
inline constexpr char kFirstOfHttp2 = 'P';

enum class Protocol {
  kGrpc,         // speaks HTTP/2, or TLS where required
  kWrongDoor,    // HTTP/2 or TLS, whichever is not spoken here
  kDeathNotice,  // death_notice.h
  kStore,        // a dialect of c10d's TCPStore (tcpstore_codec.h), where a store is served
  kKnock,        // liveness_probe.h
  kStranger,     // an unknown protocol
};

// `secure`: gRPC uses TLS here.
inline Protocol ProtocolBy(char first, bool secure, bool serves_store) {
  if (first == kFirstOfTls) return secure ? Protocol::kGrpc : Protocol::kWrongDoor;
  if (first == kFirstOfHttp2) return secure ? Protocol::kWrongDoor : Protocol::kGrpc;
  if (first == kFirstOfDeathNotice) return Protocol::kDeathNotice;
  // Its opcodes are small numbers (c10d TCPStoreBackend.hpp, QueryType).
  if (serves_store && static_cast<unsigned char>(first) <= kLastOpcode) return Protocol::kStore;
  if (first == kFirstOfKnock) return Protocol::kKnock;
  return Protocol::kStranger;
}

// What a TLS client sends in the clear: the name of the server it wants.

// This many bytes tell a record's length (RFC 8446, 5.1).
inline constexpr std::size_t kTlsHeaderBytes = 5;
// The largest record, including encryption overhead (RFC 8446, 5.2).
inline constexpr std::size_t kMostTlsRecordBytes = kTlsHeaderBytes + (1 << 14) + 256;

// The size of the TLS record that begins with these bytes, including its header; 0: not a record
// that may begin a connection. nullopt: fewer than kTlsHeaderBytes.
std::optional<std::size_t> TlsRecordBytes(std::string_view beginning);

// The server name in a ClientHello (RFC 6066, 3); `record` is a TLS record. Empty: it names none,
// or is not a complete ClientHello.
std::string_view ServerNameIn(std::string_view record);

}  // namespace muster::rendezvous
