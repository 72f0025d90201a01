// A TCP connection that is tried once, for a limited time, to see what comes of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace muster::launcher {

enum class DialOutcome {
  kConnected,
  kRefused,  // a host, or a firewall that rejects, has said so
  kSilent,   // nothing came back: a firewall drops, or nobody is there
  kNoRoute,  // a router, or this machine, knows no way there
  kFailed,   // anything else
};

struct Dialled {
  DialOutcome outcome = DialOutcome::kFailed;
  std::string cause;      // as the system says it; empty: connected
  base::UniqueFd socket;  // connected, and not blocking; close-on-exec
  std::chrono::nanoseconds took{0};
};

// `address` is numeric. Waits for `limit` at most.
Dialled Dial(const std::string& address, std::uint16_t port, std::chrono::milliseconds limit);

// Waits until the descriptor can be read, or written, or `deadline`; false: the deadline came.
bool AwaitReadable(int fd, std::chrono::steady_clock::time_point deadline);
bool AwaitWritable(int fd, std::chrono::steady_clock::time_point deadline);

}  // namespace muster::launcher
