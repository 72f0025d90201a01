// The client of an agent that shares its process with the daemon: no network, no wire, no lease.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/fronts/daemon_loop.h"

namespace muster::rendezvous {

// `io`, `daemon_loop` and `listener` must outlive it, and the first two what it delivers.
class InProcessClient final : public RendezvousClient {
 public:
  InProcessClient(boost::asio::io_context& io, DaemonLoop& daemon_loop, Listener& listener);
  // If it has not left, the node is lost.
  ~InProcessClient() override;

  void Join(const JoinRequest& request) override;
  std::optional<DeathNotice> death_notice() const override { return std::nullopt; }
  void Say(Event event) override;
  std::unique_ptr<LogDelivery> DeliverLog(std::uint64_t delivery,
                                          LogDelivery::Handlers handlers) override;
  void ProgressMade() override;
  void Leave(const std::string& reason, std::function<void()> left) override;

 private:
  // There are no beats to say it with.
  void TellLost(AgentId agent);

  boost::asio::io_context& io_;
  DaemonLoop& daemon_loop_;
  Listener& listener_;
  AgentId agent_ = 0;  // 0: has left
  base::Timer progress_timer_;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
