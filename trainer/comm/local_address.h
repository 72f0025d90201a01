// Which of this machine's addresses leads to another one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster::trainer {

// The local IP address that the kernel would send from to reach `host`:`port`: 127.0.0.1 for a
// loopback address. Nothing is sent; a name is resolved, which may block. kUnavailable when `host`
// does not resolve or no route leads there.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& host, std::uint16_t port);

}  // namespace muster::trainer
