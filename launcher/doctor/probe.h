// Measures the way from one host to another: both ends. Each measurement has a key, which both ends
// were told over the connections of the launch tree; whoever does not know it is not answered. All
// of it is bounded in time and in bytes, and blocks: the process does nothing else meanwhile.
//
// The one end sends packets by UDP that may not be split, of several sizes, then connects by TCP to
// the same port number, says the key, makes round trips, and sends for a third of a second. The
// other counts what comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/doctor/way.h"

namespace muster::launcher {

inline constexpr std::size_t kProbeKeySize = 16;

// Sockets at one address of this machine, from one port number of it for both, where measurements
// of others arrive.
class ProbePort {
 public:
  // At `port` if that is free for TCP and UDP, else at any. An error says what could not be done.
  static absl::StatusOr<ProbePort> Open(const std::string& address, std::uint16_t port);

  std::uint16_t port() const { return port_; }

  // Lets one measurement with this key take place; waits for it for `limit` at most.
  Arrival Receive(const std::string& key, std::chrono::milliseconds limit) const;

 private:
  ProbePort() = default;

  std::string address_;
  std::uint16_t port_ = 0;
  base::UniqueFd listener_;
  base::UniqueFd datagrams_;
};

// Measures the way to a ProbePort that receives. At most 12 seconds.
Way Probe(const std::string& address, std::uint16_t port, const std::string& key);

// The largest packet that the interface with this address, which is one of this machine's, sends;
// 0: unknown.
int MtuAt(const std::string& address);

}  // namespace muster::launcher
