// Pushes jobs to those who watch them: the call Watch of proto/rendezvous.proto.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <grpcpp/support/byte_buffer.h>
#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/async/timer.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/fronts/subscriptions.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// A watcher has one update on its way at most. What changes meanwhile is in the next one, which is
// made when that has been taken: so one that does not read costs what one update takes, and no
// other is told later for it. It is cut off after limits::kWatcherSeconds.
//
// Lives on the loop's thread. `io`, the feed, the router and the DaemonLoops that it leads to must
// outlive the front, and the front the grpc::Server that the router is registered with.
class GrpcWatchFront final : private ChangeFeed::Publisher {
 public:
  // What the front asks its server, on the loop; may be empty.
  struct Listener {
    // What to hold while a call from there watches, or why it must not.
    std::function<absl::StatusOr<std::shared_ptr<void>>(const Peer&)> watching;
  };

  GrpcWatchFront(boost::asio::io_context& io, RpcRouter& router, ChangeFeed& feed,
                 Listener listener);
  ~GrpcWatchFront() override;
  GrpcWatchFront(const GrpcWatchFront&) = delete;
  GrpcWatchFront& operator=(const GrpcWatchFront&) = delete;

  // Tells those who watch what they have not been told yet, and that the daemon ends. `ended` is
  // called when they have taken it, or had a quarter of a second to; maybe from within. The
  // router is closed by then.
  void End(std::function<void()> ended);

 private:
  class Watcher;
  // Updates that were made for several watchers, by tenant and run id.
  using Updates = std::map<std::pair<std::string, std::string>, grpc::ByteBuffer>;

  void Publish(const ChangeFeed::News& news) override;
  bool is_watched() const override { return !watchers_.empty(); }
  std::chrono::milliseconds pause() const override { return pause_; }
  // An update was made, of so many bytes.
  void OnTold(bool any_rank_tells, std::size_t bytes);
  // Why there must not be one more.
  absl::Status Objection(const std::string& tenant) const;
  void Gone(Watcher* watcher);
  void EndWithin(std::chrono::milliseconds time);

  boost::asio::io_context& io_;
  RpcRouter& router_;
  ChangeFeed& feed_;
  const Listener listener_;
  std::set<Watcher*> watchers_;
  // Until ranks that tell of their steps have told more; and what follows for the next, of what is
  // being told.
  std::chrono::milliseconds pause_ = ChangeFeed::kAtLeast;
  bool any_rank_tells_ = false;
  std::size_t told_bytes_ = 0;
  std::function<void()> ended_;  // set while it ends
  base::Timer parting_;
};

}  // namespace muster::rendezvous
