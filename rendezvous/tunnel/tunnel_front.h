// The gRPC face of a tunnel: proto/tunnel.proto's service in front of the workers' store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/tunnel.pb.h"
#include "rendezvous/fronts/call_entrance.h"
#include "rendezvous/tunnel/tunnel_round.h"

namespace muster::rendezvous {

// Relays each stream to a connection of its own to the store, which is on this machine. Lives on
// the loop's thread. `io` and the entrance must outlive the front, and the front the grpc::Server
// that the entrance is registered with.
class TunnelFront final {
 public:
  // What the front asks its server, on the loop and while the call is open.
  struct Gate {
    // Returns something to hold while the call is under way.
    std::function<std::shared_ptr<void>(const grpc::CallbackServerContext&)> hold;
    // A caller was refused for another reason: "asks for ...".
    std::function<void(const grpc::CallbackServerContext&, const std::string& what)> complain;
  };

  TunnelFront(boost::asio::io_context& io, CallEntrance& entrance, Gate gate);
  ~TunnelFront();
  TunnelFront(const TunnelFront&) = delete;
  TunnelFront& operator=(const TunnelFront&) = delete;

  // From now on carries connections for this round, to the store at `store`.
  void BeginRound(TunnelRound round, const boost::asio::ip::tcp::endpoint& store);
  // Cuts all streams; whoever comes until the next round is refused.
  void EndRound();

  std::size_t streams() const { return streams_.size(); }

 private:
  class Stream;

  // A connection to the store for a stream that begins with this, not connected yet.
  absl::StatusOr<boost::asio::ip::tcp::socket> Admit(const tunnel::v1::Open& open) const;

  boost::asio::io_context& io_;
  CallEntrance& entrance_;
  const Gate gate_;
  std::optional<TunnelRound> round_;
  boost::asio::ip::tcp::endpoint store_;
  std::set<Stream*> streams_;
  std::vector<char> buffer_;
};

}  // namespace muster::rendezvous
