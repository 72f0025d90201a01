// One TCP connection attempt with a timeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "launcher/doctor/report.h"
#include "rendezvous/client/daemon_channel.h"

namespace muster::launcher {

enum class DialOutcome {
  kConnected,
  kRefused,  // by the host, or by a firewall that rejects
  kSilent,   // no answer: a firewall drops, or no host is there
  kNoRoute,  // a router or this machine has no route
  kFailed,   // anything else
};

struct Dialled {
  DialOutcome outcome = DialOutcome::kFailed;
  std::string cause;      // the system's error; empty: connected
  base::UniqueFd socket;  // connected, nonblocking and close-on-exec
  std::chrono::nanoseconds took{0};
};

// `address` is numeric. Waits at most `limit`.
Dialled Dial(const std::string& address, std::uint16_t port, std::chrono::milliseconds limit);

// Wait until the descriptor is readable or writable; false if `deadline` passes first.
bool AwaitReadable(int fd, std::chrono::steady_clock::time_point deadline);
bool AwaitWritable(int fd, std::chrono::steady_clock::time_point deadline);

// This machine's name, and whether it resolves to an address that other machines can reach.

struct Names {
  std::string host_name;
  // The numeric addresses of the name; empty if it does not resolve.
  std::vector<std::string> addresses;
  std::string trouble;  // the resolver's error
  std::chrono::milliseconds took{0};
  // Addresses of the machine's interfaces, without loopback.
  std::vector<std::string> own;
  bool has_localhost = true;
};

// Asks the resolver, and so perhaps DNS: may block until that times out.
Names ReadNames();

void Judge(const Names& names, Report& report);

// The numeric addresses of a host without duplicates, or the resolver's error.
struct Resolved {
  std::vector<std::string> addresses;
  std::string trouble;
};
Resolved Resolve(const std::string& host);

// Whether this machine can reach a rendezvous and gets an answer.

struct RendezvousReach {
  rendezvous::Endpoint endpoint;
  Resolved resolved;
  // It resolves to loopback only, though it is not written as a loopback address.
  bool leads_to_loopback = false;
  DialOutcome outcome = DialOutcome::kFailed;
  std::string dialled;  // the last address tried
  std::string cause;    // why the connection failed
  std::chrono::nanoseconds took{0};
  // Why the daemon does not answer on an established connection; empty if it does.
  std::string answer_trouble;
  // The daemon's clock; nullopt if unknown.
  std::optional<rendezvous::ClockReading> clock;
};

// Resolves, connects and makes a call that needs the token. Waits at most `patience` for each, and
// for DNS until the resolver times out.
RendezvousReach ReachRendezvous(const rendezvous::DaemonOptions& daemon);

void Judge(const RendezvousReach& reach, Report& report);

}  // namespace muster::launcher
