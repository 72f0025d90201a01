// What a connection to the rendezvous's port is for, by its first byte. Every protocol there begins
// with a byte that no other begins with.
#pragma once

#include "rendezvous/wire/death_notice.h"
#include "rendezvous/wire/knock.h"
#include "rendezvous/wire/tcpstore_dialect.h"
#include "rendezvous/wire/wrong_door.h"

namespace muster::rendezvous {

// The first byte of HTTP/2's connection preface, "PRI" (RFC 9113, 3.4).
inline constexpr char kFirstOfHttp2 = 'P';

enum class Caller {
  kGrpc,         // speaks HTTP/2, or TLS where that is asked for
  kWrongDoor,    // the one of these two that is not spoken here
  kDeathNotice,  // death_notice.h
  kStore,        // a dialect of c10d's TCPStore (tcpstore_dialect.h), where a store is served
  kKnock,        // knock.h
  kStranger,     // nobody here understands him
};

// `secure`: gRPC speaks TLS here.
inline Caller CallerBy(char first, bool secure, bool serves_store) {
  if (first == kFirstOfTls) return secure ? Caller::kGrpc : Caller::kWrongDoor;
  if (first == kFirstOfHttp2) return secure ? Caller::kWrongDoor : Caller::kGrpc;
  if (first == kFirstOfDeathNotice) return Caller::kDeathNotice;
  // Its opcodes are small numbers (c10d TCPStoreBackend.hpp, QueryType).
  if (serves_store && static_cast<unsigned char>(first) <= kLastOpcode) return Caller::kStore;
  if (first == kFirstOfKnock) return Caller::kKnock;
  return Caller::kStranger;
}

}  // namespace muster::rendezvous
