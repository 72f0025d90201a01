// Measures the link between two hosts, with code for both ends. Both get the key of a measurement
// over the launch tree; a peer without it gets no answer. Everything is bounded in time and bytes,
// and blocks: the process does nothing else meanwhile.
//
// The sender sends unfragmented UDP packets of several sizes, then connects by TCP to the same port
// number, sends the key, makes round trips, and sends data for a third of a second. The receiver
// counts what arrives.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/doctor/link_measurement.h"

namespace muster::launcher {

inline constexpr std::size_t kProbeKeySize = 16;

// A TCP and a UDP socket at one address and port of this machine, which receive measurements from
// others.
class ProbePort {
 public:
  // Opens `port` if it is free for TCP and UDP, else any port. An error says what failed.
  static absl::StatusOr<ProbePort> Open(const std::string& address, std::uint16_t port);

  std::uint16_t port() const { return port_; }

  // Serves one measurement with this key; waits at most `limit` for it.
  Arrival Receive(const std::string& key, std::chrono::milliseconds limit) const;

 private:
  ProbePort() = default;

  std::string address_;
  std::uint16_t port_ = 0;
  base::UniqueFd listener_;
  base::UniqueFd datagrams_;
};

// Measures the link to a ProbePort that receives. Takes at most 12 seconds.
LinkMeasurement Probe(const std::string& address, std::uint16_t port, const std::string& key);

}  // namespace muster::launcher
