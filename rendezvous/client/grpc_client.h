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
};

// A client over one gRPC stream, opened by the first Join. Until the daemon has answered once, a
// failed attempt is repeated with growing, jittered pauses; after that the end of the stream is the
// end of the attendance. Says that it is alive as often as the daemon's Welcome asks for.
//
// `io` and `listener` must outlive it. Destroying it without Leave cuts the stream: the daemon
// takes the node for lost.
std::unique_ptr<RendezvousClient> MakeGrpcClient(boost::asio::io_context& io,
                                                 GrpcClientOptions options,
                                                 RendezvousClient::Listener& listener);

}  // namespace muster::rendezvous
