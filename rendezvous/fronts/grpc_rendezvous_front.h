// The gRPC face of the Coordinator: proto/rendezvous.proto's service over a Driver.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "rendezvous/core/types.h"
#include "rendezvous/fronts/call_entrance.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// Parses, calls the caller's Driver once, formats; decides nothing. Lives on the loop's thread.
// `io`, the entrance and the Drivers that it leads to must outlive the front, and the front the
// grpc::Server that the entrance is registered with.
class GrpcRendezvousFront final {
 public:
  // What the front asks its server, on the loop; each may be empty.
  struct Listener {
    // Returns something to hold while an agent attends from there.
    std::function<std::shared_ptr<void>(const Peer&)> attending;
    // The secret that an agent with this session is told in its Welcome, so that it can recognize
    // answers to its knocks (wire/knock.h).
    std::function<std::string(const SessionToken&)> knock_secret;
  };

  GrpcRendezvousFront(boost::asio::io_context& io, CallEntrance& entrance, Listener listener);
  ~GrpcRendezvousFront();
  GrpcRendezvousFront(const GrpcRendezvousFront&) = delete;
  GrpcRendezvousFront& operator=(const GrpcRendezvousFront&) = delete;

  // Ends every open stream: a grpc::Server shuts down only when no call is open. Agents that still
  // attend are lost. The entrance is closed by then, so that no other stream comes.
  void EndStreams();

 private:
  class Stream;

  boost::asio::io_context& io_;
  CallEntrance& entrance_;
  const Listener listener_;
  std::set<Stream*> streams_;
};

}  // namespace muster::rendezvous
