// The gRPC face of the Coordinator: proto/rendezvous.proto's service over a Driver.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include <boost/asio/io_context.hpp>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/fronts/access.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// Parses, calls the caller's Driver once, formats; decides nothing. gRPC calls Attend, Describe and
// List on its own threads, which only post to the loop; every other method is the loop's. `io` and
// the Drivers must outlive the front, and the front the grpc::Server that it is registered with.
class GrpcRendezvousFront final : public v1::Rendezvous::CallbackService {
 public:
  // What the front asks its server, on the loop; each may be empty.
  struct Listener {
    // Returns something to hold while an agent attends from there.
    std::function<std::shared_ptr<void>(const Peer&)> attending;
    // The secret that an agent with this session is told in its Welcome, so that it can recognize
    // answers to its knocks (wire/knock.h).
    std::function<std::string(const SessionToken&)> knock_secret;
  };

  GrpcRendezvousFront(boost::asio::io_context& io, Access access, Listener listener);
  ~GrpcRendezvousFront() override;

  // Ends every open stream, and every new one from now on: a grpc::Server shuts down only when no
  // call is open. Agents that still attend are lost.
  void EndStreams();

  // What gRPC calls.
  grpc::ServerBidiReactor<v1::AgentEvent, v1::Directive>* Attend(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::JobDescription* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListRequest* request,
                                 v1::ListResponse* response) override;

 private:
  class Stream;

  boost::asio::io_context& io_;
  const Access access_;
  const Listener listener_;
  std::set<Stream*> streams_;
  bool ended_ = false;
};

}  // namespace muster::rendezvous
