// The gRPC face of the Coordinator: proto/rendezvous.proto's service over a DaemonLoop.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "rendezvous/core/values/types.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// Parses, calls the caller's DaemonLoop once, formats; decides nothing. Lives on the loop's thread.
// `io`, the router and the DaemonLoops that it leads to must outlive the front, and the front the
// grpc::Server that the router is registered with.
class GrpcRendezvousFront final {
 public:
  // What the front asks its server, on the loop; each may be empty.
  struct Listener {
    // Returns something to hold while an agent attends from there.
    std::function<std::shared_ptr<void>(const Peer&)> attending;
    // The secret that an agent with this session is told in its Welcome, so that it can recognize
    // answers to its probes (wire/liveness_probe.h).
    std::function<std::string(const SessionToken&)> knock_secret;
  };

  GrpcRendezvousFront(boost::asio::io_context& io, RpcRouter& router, Listener listener);
  GrpcRendezvousFront(const GrpcRendezvousFront&) = delete;
  GrpcRendezvousFront& operator=(const GrpcRendezvousFront&) = delete;

  // Ends every open stream: a grpc::Server shuts down only when no call is open. Agents that still
  // attend are lost. The router is closed by then, so that no other stream comes.
  void EndStreams();

 private:
  class Stream;

  boost::asio::io_context& io_;
  RpcRouter& router_;
  const Listener listener_;
  std::set<Stream*> streams_;
};

}  // namespace muster::rendezvous
