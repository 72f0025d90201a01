// A host and a port, as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::rendezvous {

// torchrun's port for a rendezvous whose endpoint names none.
inline constexpr std::uint16_t kDefaultRendezvousPort = 29400;
// torchrun's port for --master-addr without --master-port.
inline constexpr std::uint16_t kDefaultMasterPort = 29500;

struct Endpoint {
  // A name or an IP address as the user wrote it, without brackets. Never resolved here.
  std::string host;
  std::uint16_t port = 0;
  // Other places where the same rendezvous may be: daemons that stand by for one another.
  std::vector<Endpoint> standbys{};

  bool operator==(const Endpoint&) const = default;
};

// Reads `host`, `host:port`, `[v6]` or `[v6]:port`. As in torchrun, the port follows the last ':',
// so an IPv6 address needs brackets. Without a port, `default_port` is used; if there is none, that
// is an error. An error message is a phrase that continues after the text: "has no port; write
// HOST:PORT".
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text,
                                       std::optional<std::uint16_t> default_port);

// Reads one or several, separated by commas: each is a place where the rendezvous may be.
absl::StatusOr<Endpoint> ParseEndpoints(absl::string_view text,
                                        std::optional<std::uint16_t> default_port);

// The places of an endpoint, each as an endpoint without standbys.
std::vector<Endpoint> EachOf(const Endpoint& endpoint);

// The same, but local unless an address is given: `port` alone means 127.0.0.1.
absl::StatusOr<Endpoint> ParseLocalEndpoint(absl::string_view text);

// Reads a host on its own, with or without brackets. Errors as above.
absl::StatusOr<std::string> ParseHost(absl::string_view text);

// Reads a port, 0 to 65535. Errors as above.
absl::StatusOr<std::uint16_t> ParsePort(absl::string_view text);

// "localhost", or an IP address of the loopback range, as written: reachable only from this
// machine. A name that /etc/hosts maps to loopback is not, as other machines may resolve it
// differently.
bool IsLoopbackLiteral(const std::string& host);

// `host:port`, with brackets around an IPv6 address, and commas between several: what
// ParseEndpoints reads back.
std::string ToString(const Endpoint& endpoint);

// Addresses that a machine can listen at but no client can connect to.

// Why no client can connect to `host`, as a phrase that follows it, if it is an IP address for all
// addresses of a machine (0.0.0.0, ::) or for many machines (broadcast, multicast). Empty
// otherwise, and for any name: names are not resolved here.
std::string WhyNobodyConnects(const std::string& host);

}  // namespace muster::rendezvous
