// Whose a call is, and what he may do who was let in.
#pragma once

#include <memory>

#include <boost/asio/ip/address.hpp>

#include "rendezvous/fronts/driver.h"
#include "rendezvous/wire/peer.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace muster::rendezvous {

// Where a call comes from.
struct Caller {
  Peer peer;
  boost::asio::ip::address host;  // net/host_address.h, HostLine; none: it has no IP address
};

// On any thread, while the call is open.
Caller CallerOf(const grpc::ServerContextBase& call);

struct Admission {
  Driver* driver = nullptr;  // of the jobs that he may touch
  // Held while the call is under way (CallPlaces).
  std::shared_ptr<void> place;
};

}  // namespace muster::rendezvous
