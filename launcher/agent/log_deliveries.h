// Brings what workers of this node print to those who read it elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "launcher/agent/kept_logs.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/core/directive.h"

namespace muster::launcher {

// Each reader is read for as fast as he takes it, a part of at most 64 KiB in a turn of the loop;
// nobody waits for him, and nothing is kept for him. Lives on the loop's thread.
class LogDeliveries {
 public:
  // `host` is what notices call this node.
  LogDeliveries(boost::asio::io_context& io, std::string host);
  ~LogDeliveries();
  LogDeliveries(const LogDeliveries&) = delete;
  LogDeliveries& operator=(const LogDeliveries&) = delete;

  // Answers `wanted` through `client`. If its round has not begun here, that waits until it has: a
  // daemon that remembers its jobs tells of a round when that is on disk, and asks for its output
  // at once. `kept` is only read now.
  void Begin(const rendezvous::LogWanted& wanted, const KeptLogs& kept,
             rendezvous::RendezvousClient& client);
  // A round has begun, so that `kept` has it.
  void OnRoundBegun(const KeptLogs& kept, rendezvous::RendezvousClient& client);

  // Calls `done`, once and from the loop, when everybody has all, or after `limit`. The workers are
  // gone, so that nothing more comes. To be called once.
  void WhenDone(std::chrono::milliseconds limit, std::function<void()> done);

 private:
  class Delivery;

  void End(std::uint64_t id);
  void TellDone();

  boost::asio::io_context& io_;
  const std::string host_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Delivery>> deliveries_;
  // Of rounds to come. The daemon asks for few at a time, and waits ten seconds for each.
  std::vector<rendezvous::LogWanted> early_;
  boost::asio::steady_timer limit_;
  std::function<void()> done_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::launcher
