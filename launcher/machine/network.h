// This machine's name, and its addresses as other machines see them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {

// This machine's name (gethostname), or "localhost".
std::string HostName();

// Numeric addresses of this machine's interfaces without loopback, at most 64: the possible source
// addresses of its connections.
std::vector<std::string> InterfaceAddresses();

// An endpoint's host as seen from this machine.
struct EndpointView {
  // Whether the name resolved; if not, the fields below are meaningless.
  bool resolved = false;
  // The host to connect to and to listen on: as written, but 127.0.0.1 for a "localhost" without an
  // entry (a container without /etc/hosts), as RFC 6761 requires.
  std::string host;
  // Whether it is an address of this machine.
  bool ours = false;
  // Whether it resolves to loopback addresses only. That is intended for "localhost" and 127.0.0.1;
  // for a host name it comes from this machine's /etc/hosts, and other machines see another
  // address.
  bool loopback = false;
  // The numeric address from which this machine reaches the host, and so where other machines can
  // reach this one. Empty if there is no route.
  std::string local_address;
};

// Resolves the host (may wait for DNS) and asks the kernel for the route; sends no packet.
EndpointView LookAtEndpoint(const rendezvous::Endpoint& endpoint);

// Whether the host resolves to a non-loopback address of this machine. May wait for DNS.
bool ResolvesToInterface(const std::string& host);

// The name of the network interface with this numeric address; empty if there is none.
std::string InterfaceWith(const std::string& address);

// The network interface to set for Gloo where its own choice would be wrong.

// Gloo listens at the address to which this machine's own name resolves, or on loopback if no
// interface has that address (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp,
// createDefaultDevice). Other nodes then cannot connect. That happens with the 127.0.1.1 in
// Debian's /etc/hosts, and in containers whose name does not resolve.
//
// `own_name` is this machine's name, `address` the address that other nodes use for it. nullopt if
// Gloo needs no help, or if all of the job's nodes are on this machine. Otherwise the name of the
// interface with `address`; empty if there is none, for example if `address` is a name that
// resolves to loopback here. May wait for DNS.
std::optional<std::string> InterfaceForGloo(const std::string& own_name,
                                            const std::string& address);

// Reserves the TCP port of the workers' store until the store binds it.

// A socket bound to a port on all addresses of this machine, without listening. While it exists,
// the kernel does not assign the port to programs that ask for any free one. A program that asks
// for this port with SO_REUSEADDR, as c10d's TCPStore, Gloo and every common server do, still gets
// it: Linux lets sockets with SO_REUSEADDR share a port as long as none listens
// (inet_csk_bind_conflict).
class ReservedPort {
 public:
  // Holds `port`, or a free one for 0. An error has the cause: "hold port 29500 for the workers:
  // Address already in use".
  static absl::StatusOr<ReservedPort> Hold(std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  ReservedPort(base::UniqueFd socket, std::uint16_t port)
      : socket_(std::move(socket)), port_(port) {}

  base::UniqueFd socket_;
  std::uint16_t port_;
};

}  // namespace muster::launcher
