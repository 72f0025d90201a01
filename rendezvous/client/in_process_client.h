// The client of an agent that shares its process with the daemon: no network, no wire, no lease.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/fronts/driver.h"

namespace muster::rendezvous {

// `io`, `driver` and `listener` must outlive it, and the first two what it delivers.
class InProcessClient final : public RendezvousClient {
 public:
  InProcessClient(boost::asio::io_context& io, Driver& driver, Listener& listener);
  // If it has not left, the node is lost.
  ~InProcessClient() override;

  void Join(const JoinRequest& request) override;
  std::optional<DeathNotice> death_notice() const override { return std::nullopt; }
  void WorkersStarted(RoundId round) override;
  void WorkersExited(RoundId round, const WorkersOutcome& outcome) override;
  std::unique_ptr<LogDelivery> DeliverLog(std::uint64_t delivery,
                                          LogDelivery::Handlers handlers) override;
  void ProgressMade() override;
  void Leaving(const std::string& reason) override;
  void AskToLeave(RoundId round, const std::string& reason) override;
  void Leave(const std::string& reason, std::function<void()> left) override;

 private:
  // There are no beats to say it with.
  void TellLost(AgentId agent);

  boost::asio::io_context& io_;
  Driver& driver_;
  Listener& listener_;
  AgentId agent_ = 0;  // 0: has left
  boost::asio::steady_timer progress_timer_;
  bool tells_progress_ = false;  // when the timer expires
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
