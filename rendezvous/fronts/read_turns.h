// Whose message is read when: a few at a time, so that those that are half there have a bound.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"

namespace muster::rendezvous {

// gRPC makes room for a whole message as soon as somebody wants to read it, and a client may send
// it all but for its last byte. Before that it holds no more of a call than its window
// (limits::kWindowBytes). So a message is read when it is its call's turn. Tenants take turns, and
// a tenant's hosts; none may have all. A message that takes longer than `patience` has to make room
// when another waits, so whoever does not go on delays others by that much at most.
//
// Lives on the loop's thread.
class ReadTurns {
 public:
  struct Limits {
    std::size_t at_once = 0;
    // Of one tenant, but for the only user there is, whose name is empty.
    std::size_t of_tenant = 0;
    // Of one host of a tenant's.
    std::size_t of_host = 0;
    std::chrono::milliseconds patience{};
  };
  // Where a message comes from (net/host_address.h, HostLine).
  using Host = boost::asio::ip::address;

  ReadTurns(boost::asio::io_context& io, const Limits& limits) : limits_(limits), overdue_(io) {}
  ReadTurns(const ReadTurns&) = delete;
  ReadTurns& operator=(const ReadTurns&) = delete;

  // A place in the line, or a turn. Over when it is destroyed, on the loop; may outlive the turns.
  class Turn;

  // Calls `begin` when the turn comes, which may be at once, and `too_slow` when it has to end: it
  // is over by then. Neither may destroy the turns.
  std::unique_ptr<Turn> Ask(const std::string& tenant, const Host& host,
                            std::function<void()> begin, std::function<void()> too_slow);

  std::size_t reading() const { return reading_.size(); }
  std::size_t waiting() const { return waiting_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct OfHost {
    std::size_t reading = 0;
    std::list<Turn*> line;
  };
  struct OfTenant {
    std::size_t reading = 0;
    std::map<Host, OfHost> hosts;
    Host last;  // who had the last turn
  };

  void End(Turn* turn);
  // Whose turn it is; null: nobody may have one.
  Turn* Next();
  // Gives turns to those who may have them.
  void GoOn();
  void AwaitOverdue();

  const Limits limits_;
  std::list<Turn*> reading_;  // the longest at the front
  std::map<std::string, OfTenant> tenants_;
  std::string last_;  // who had the last turn
  std::size_t waiting_ = 0;
  boost::asio::steady_timer overdue_;
  bool awaits_overdue_ = false;
  base::Lifetime lifetime_;
};

class ReadTurns::Turn {
 public:
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  friend class ReadTurns;
  enum class State { kWaits, kReads, kOver };

  Turn(ReadTurns& turns, const std::string& tenant, const Host& host)
      : turns_(turns), alive_(turns.lifetime_.watch()), tenant_(tenant), host_(host) {}

  ReadTurns& turns_;
  const base::Lifetime::Watch alive_;  // whether turns_ is there
  const std::string tenant_;
  const Host host_;
  std::function<void()> begin_, too_slow_;
  State state_ = State::kWaits;
  std::list<Turn*>::iterator place_;
  Clock::time_point since_;  // while it reads
};

}  // namespace muster::rendezvous
