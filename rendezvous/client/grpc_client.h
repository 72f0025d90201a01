// The client of an agent whose daemon is reached over the network.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/credentials.h"
#include "rendezvous/endpoint.h"

namespace muster::rendezvous {

struct GrpcClientOptions {
  Endpoint endpoint;
  Credentials credentials = Credentials::Plaintext();
  // How long to go on trying until the daemon first answers.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(60);
  // How long to go on trying to come back when the connection has broken.
  std::chrono::milliseconds reconnect_timeout = std::chrono::minutes(10);
};

// A client over one gRPC stream after another, the first opened by the first Join. An attempt that
// fails is repeated with growing, jittered pauses. Says that it is alive as often as the daemon's
// Welcome asks for, and keeps its end of the lease (lease_keeper.h).
//
// An attendance outlives its connection: a client that has broken off comes back with the session
// token that it chose, and then says again what it had said since its last Join, that included. A
// connection over which nothing is answered for half a lease is given up for a new one. When
// the daemon's machine refuses the connection and that daemon remembers nothing (Welcome::durable),
// there is nothing to come back to, and the attendance ends at once.
//
// `io` and `listener` must outlive it. Destroying it without Leave cuts the stream: the daemon
// takes the node for lost when it does not come back.
std::unique_ptr<RendezvousClient> MakeGrpcClient(boost::asio::io_context& io,
                                                 GrpcClientOptions options,
                                                 RendezvousClient::Listener& listener);

}  // namespace muster::rendezvous
