// The options of a TcpStoreServer.
#pragma once

#include <cstddef>
#include <optional>

#include "rendezvous/core/key_value_store.h"
#include "rendezvous/wire/tcpstore_dialect.h"

namespace muster::rendezvous {

struct TcpStoreOptions {
  // The protocol has no error reply: a client that breaks a limit loses its connection, and a
  // warning says why. Key and value sizes and the number of keys are limited as in c10d's own
  // server.
  KeyValueLimits limits{.key_bytes = 8 << 10,
                        .value_bytes = 8 << 20,
                        .keys = 4'000'000,
                        .total_bytes = std::size_t{1} << 30,
                        .waits = 1'000'000,
                        .wait_bytes = std::size_t{1} << 30};
  std::size_t keys_per_request = 128 << 10;
  // The size of one request, and of all incomplete requests together.
  std::size_t request_bytes = 256 << 20;
  std::size_t input_bytes = std::size_t{1} << 30;

  // Connections beyond this number wait in the listening socket's queue.
  std::size_t connections = 262'144;
  // Replies that a client has not taken: with more than the first limit none of its further
  // requests is read, with more than the second the connection is closed.
  std::size_t output_pause_bytes = 1 << 20;
  std::size_t output_limit_bytes = 256 << 20;

  // Connections from this machine are taken from this process's user and from root alone
  // (net/socket_owner.h).
  bool own_user_only = false;

  // What clients before 2.2 speak, k1x or k21, for the few requests that do not show it.
  std::optional<TcpStoreDialect> legacy_dialect;
};

}  // namespace muster::rendezvous
