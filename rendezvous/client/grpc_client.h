// The client of an agent whose daemon is reached over the network.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

struct GrpcClientOptions {
  Endpoint endpoint;
  Credentials credentials = Credentials::Plaintext();
  // How long to keep trying until the daemon first answers.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(60);
  // How long to keep trying to come back when the connection has broken.
  std::chrono::milliseconds reconnect_timeout = std::chrono::minutes(10);
  // Nothing in this network refuses connections in the place of the daemon's machine.
  bool trust_refusals = false;
};

// The stream, the timer and the probes of an AgentSession (agent_session.h), which decides
// everything: one gRPC stream after another, the first opened by the first Join.
//
// `io` and `listener` must outlive it. Destroying it without Leave cuts the stream: the daemon
// takes the node for lost when it does not come back.
std::unique_ptr<RendezvousClient> MakeGrpcClient(boost::asio::io_context& io,
                                                 GrpcClientOptions options,
                                                 RendezvousClient::Listener& listener);

}  // namespace muster::rendezvous
