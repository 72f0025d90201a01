// What this machine is called, and which of its addresses others use.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/net/endpoint.h"

namespace muster::launcher {

// The name of this machine (gethostname), or "localhost".
std::string HostName();

// The numeric addresses of this machine's network interfaces, without loopback, at most 64: where
// connections from its processes may come from.
std::vector<std::string> InterfaceAddresses();

// How an endpoint's host looks from here.
struct EndpointView {
  // It resolved. Nothing below is known otherwise.
  bool resolved = false;
  // The host to connect to and to listen at: as written, but 127.0.0.1 for a "localhost" that this
  // machine has no entry for (a container without /etc/hosts); RFC 6761 defines what it must mean.
  std::string host;
  // It is an address of this machine.
  bool ours = false;
  // It resolves to loopback addresses only. For "localhost" and 127.0.0.1 that is what was meant;
  // for a host name it is an entry of this machine's own /etc/hosts, and other machines see another
  // address.
  bool loopback = false;
  // The address from which this machine reaches it, numeric: what the connection to the rendezvous
  // would come from, and so where others can reach this machine. Empty if there is no route.
  std::string local_address;
};

// Resolves the host (this may wait for DNS) and asks the kernel for the route; no packet is sent.
EndpointView LookAtEndpoint(const rendezvous::Endpoint& endpoint);

// Whether the host resolves to an address of this machine that is not a loopback address. May wait
// for DNS.
bool ResolvesToInterface(const std::string& host);

// The name of the network interface that has this numeric address; empty: none has.
std::string InterfaceWith(const std::string& address);

}  // namespace muster::launcher
