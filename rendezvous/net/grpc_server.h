// gRPC's server where connections are accepted by us.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/net/call_gate.h"
#include "rendezvous/net/credentials.h"

namespace grpc {
class CallbackGenericService;
class Server;
namespace experimental {
class ExternalConnectionAcceptor;
}  // namespace experimental
}  // namespace grpc

namespace muster::rendezvous {

// A server of gRPC's without a port: it is handed connections (net/shared_port.h), and holds them
// to the limits that all connections have (core/limits.h). Lives on the loop's thread; services
// are called on gRPC's.
//
// Whoever starts it or hands it a connection may have to wait: gRPC then makes contexts of TLS for
// all tokens, or looks whether there are others and makes new ones. Each context has the roots of
// all, which gRPC parses anew each time, half a millisecond for each pair of tenants: dozens take
// seconds. So a thread that does nothing else hands connections over, and another may start it.
class GrpcServer {
 public:
  struct Limits {
    std::uint64_t streams = 0;  // calls that may be under way over one connection
    // What is taken of a message before somebody reads it; 0: what gRPC takes by itself.
    std::uint64_t window_bytes = 0;
  };

  // Starts gRPC's threads. Calls are counted at the gate, and all are the service's, which must
  // outlive the server. Unavailable when gRPC cannot.
  using Started = absl::StatusOr<std::unique_ptr<GrpcServer>>;
  static Started Start(boost::asio::io_context& io, const Credentials& credentials,
                       std::shared_ptr<CallGate> gate, grpc::CallbackGenericService& service,
                       const Limits& most);
  // The same on a thread of its own. `over` is called from the loop when that has ended, and
  // whoever destroys the result waits for it.
  static std::future<Started> StartAside(boost::asio::io_context& io,
                                         const Credentials& credentials,
                                         std::shared_ptr<CallGate> gate,
                                         grpc::CallbackGenericService& service, const Limits& most,
                                         std::function<void()> over);

  // Must have been stopped.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Takes over a non-blocking connection of which nothing has been read.
  void Take(boost::asio::ip::tcp::socket connection);

  // Ends all connections. Calls that the services do not end by themselves are cancelled; it waits
  // for each of them, so the loop has to go on. `stopped` is called from the loop. To be called
  // once.
  void Stop(std::function<void()> stopped);

 private:
  explicit GrpcServer(boost::asio::io_context& io);

  boost::asio::io_context& io_;
  boost::asio::io_context handing_over_{1};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::thread hands_over_;  // runs its loop until Stop
  std::thread shutdown_;    // from Stop until everything has stopped
};

}  // namespace muster::rendezvous
