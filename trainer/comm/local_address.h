// Finds the local address that can reach another machine.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster::trainer {

// The local IP address from which the kernel would send to `host`:`port`; 127.0.0.1 for a loopback
// address. Sends nothing, but resolving a name may block. kUnavailable when `host` cannot be
// resolved or there is no route to it.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& host, std::uint16_t port);

// The name of the network interface with the local IP address `address`; empty when there is none.
std::string InterfaceOf(const std::string& address);

}  // namespace muster::trainer
