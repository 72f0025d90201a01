// The gRPC face of LogExchange: the calls ReadLog and DeliverLog of proto/rendezvous.proto.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// Parses, calls the caller's LogExchange, formats. Of a reading one part is with gRPC at a time,
// and of a delivery one message is read at a time, when it is asked for: so what is on its way
// waits in HTTP/2's windows, and the rest with its agent. Lives on the loop's thread. `io`, the
// router and the DaemonLoops that it leads to must outlive the front, and the front the
// grpc::Server that the router is registered with.
class GrpcLogFront final {
 public:
  // Asked on the loop before a call is let in: what to hold while it is open,
  // or why it must not be. May be empty.
  using Hold = std::function<absl::StatusOr<std::shared_ptr<void>>(const Peer&)>;

  // Who has no token any more reads no further.
  GrpcLogFront(boost::asio::io_context& io, RpcRouter& router, Hold hold);
  GrpcLogFront(const GrpcLogFront&) = delete;
  GrpcLogFront& operator=(const GrpcLogFront&) = delete;

  // Ends every call with UNAVAILABLE. The router is closed by then, so that no other comes.
  void EndStreams();

 private:
  // Either.
  class Stream {
   public:
    // Ends the call, if it has not ended; whoever is at its other end here is told.
    virtual void Lose(const absl::Status& status) = 0;

   protected:
    ~Stream() = default;
  };
  template <typename In>
  class Call;
  class Reading;
  class Bringing;
  // How many calls there are, of all and of each tenant; so many may be.
  struct Counted {
    std::size_t most = 0;
    std::size_t most_of_tenant = 0;
    std::size_t calls = 0;
    std::map<std::string, std::size_t> of_tenant{};
  };

  boost::asio::io_context& io_;
  RpcRouter& router_;
  const Hold hold_;
  Counted readings_;
  Counted deliveries_;
  std::set<Stream*> streams_;
};

}  // namespace muster::rendezvous
