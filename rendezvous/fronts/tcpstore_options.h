// What a TcpStoreServer may be told.
#pragma once

#include <cstddef>
#include <optional>

#include "rendezvous/core/key_value_store.h"
#include "rendezvous/wire/tcpstore_dialect.h"

namespace muster::rendezvous {

struct TcpStoreOptions {
  // The protocol has no error reply: whoever breaks a limit loses the connection, and a warning
  // says why. Key, value and number of keys are limited as by c10d's own server.
  KeyValueLimits limits{.key_bytes = 8 << 10,
                        .value_bytes = 8 << 20,
                        .keys = 4'000'000,
                        .total_bytes = std::size_t{1} << 30,
                        .waits = 1'000'000,
                        .wait_bytes = std::size_t{1} << 30};
  std::size_t keys_per_request = 128 << 10;
  // Of one request, and of all requests together that have not come whole.
  std::size_t request_bytes = 256 << 20;
  std::size_t input_bytes = std::size_t{1} << 30;

  // Those beyond wait in the listening socket's queue.
  std::size_t connections = 262'144;
  // Replies that a client has not taken: with more than the first no further request of its is
  // read, with more than the second the connection is closed.
  std::size_t output_pause_bytes = 1 << 20;
  std::size_t output_limit_bytes = 256 << 20;

  // What clients before 2.2 speak, k1x or k21, for those few requests that do not show it.
  std::optional<TcpStoreDialect> legacy_dialect;
};

}  // namespace muster::rendezvous
