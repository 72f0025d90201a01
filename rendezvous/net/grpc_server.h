// A gRPC server whose connections are accepted by us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

// A gRPC server without a port: it is given connections (net/shared_port.h), and enforces the
// limits on connections (core/limits.h). Lives on the loop's thread; services are called on gRPC's
// threads.
//
// Starting it or giving it a connection may block: changed tokens are read, and gRPC creates TLS
// contexts, a millisecond each (credentials.h). So connections are handed over on a dedicated
// thread, and the server may be started on another.
class GrpcServer {
 public:
  struct Limits {
    std::uint64_t streams = 0;  // concurrent calls per connection
    // Bytes of a message accepted before it is read; 0: gRPC's default.
    std::uint64_t window_bytes = 0;
  };

  // Starts gRPC's threads. Calls are counted at the gate, and all go to the service, which must
  // outlive the server. Unavailable when gRPC cannot start; FailedPrecondition when the credentials
  // are not for a server.
  using Started = absl::StatusOr<std::unique_ptr<GrpcServer>>;
  static Started Start(boost::asio::io_context& io, const Credentials& credentials,
                       std::shared_ptr<CallGate> gate, grpc::CallbackGenericService& service,
                       const Limits& most);
  // The same on a separate thread. `over` is called from the loop when that has ended; destroying
  // the result waits for it.
  static std::future<Started> StartAside(boost::asio::io_context& io,
                                         const Credentials& credentials,
                                         std::shared_ptr<CallGate> gate,
                                         grpc::CallbackGenericService& service, const Limits& most,
                                         std::function<void()> over);

  // Stop must have completed.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Takes over a non-blocking connection of which nothing has been read; with TLS, its first record
  // must have arrived in full.
  void Take(boost::asio::ip::tcp::socket connection);

  // Ends all connections, cancels the calls that services do not end by themselves, and waits for
  // each of them, so the loop must keep running. `stopped` is called from the loop. Call once.
  void Stop(std::function<void()> stopped);

 private:
  explicit GrpcServer(boost::asio::io_context& io);

  // The port where this connection is handed over.
  std::size_t PortFor(int fd) const;

  boost::asio::io_context& io_;
  boost::asio::io_context handing_over_{1};
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> ports_;
  std::function<std::size_t(absl::string_view server_name)> port_for_;  // null: there is one port
  std::unique_ptr<grpc::Server> server_;
  std::thread hands_over_;  // runs its loop until Stop
  std::thread shutdown_;    // from Stop until everything has stopped
};

// gRPC's process-wide settings, made once, before its first use.

// Sends gRPC's own log to ours at debug level (gRPC never writes to the user's terminal), and turns
// off the polling of idle channels and deadlock detection. Call before any other use of gRPC, from
// the main thread; later calls do nothing.
void InitGrpcRuntime();

// gRPC aborts, or hangs, when it cannot start one of its threads. If `ulimit -u` or a control group
// may be too low, this starts as many threads as gRPC needs, which takes 2 ms. ResourceExhausted,
// with the remedy, if that fails. For servers, and for clients before their first call.
absl::Status CheckThreads();

}  // namespace muster::rendezvous
