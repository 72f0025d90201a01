// Whose message is read when: a few at a time, so that those that are half there have a bound.
#pragma once

#include <atomic>
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

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// gRPC makes room for a whole message as soon as somebody wants to read it, and a client may send
// it all but for its last byte. Before that it holds no more of a call than its window
// (limits::kWindowBytes). So a message is read when it is its call's turn. Tenants take turns, and
// a tenant's hosts; none may have all. A message that takes longer than `patience` has to make room
// when another waits, so whoever does not go on delays others by that much at most.
//
// Lives on the loop's thread.
class ReadScheduler {
 public:
  struct Limits {
    std::size_t at_once = 0;
    // Of one tenant, but for the only user there is, whose name is empty.
    std::size_t of_tenant = 0;
    // Of one host of a tenant's.
    std::size_t of_host = 0;
    std::chrono::milliseconds patience{};
  };
  // Where a message comes from (peer.h, HostLine).
  using Host = boost::asio::ip::address;

  ReadScheduler(boost::asio::io_context& io, const Limits& limits)
      : limits_(limits), overdue_(io) {}
  ReadScheduler(const ReadScheduler&) = delete;
  ReadScheduler& operator=(const ReadScheduler&) = delete;

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
  base::Timer overdue_;
  base::Lifetime lifetime_;
};

class ReadScheduler::Turn {
 public:
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  friend class ReadScheduler;
  enum class State { kWaits, kReads, kOver };

  Turn(ReadScheduler& turns, const std::string& tenant, const Host& host)
      : turns_(turns), alive_(turns.lifetime_.watch()), tenant_(tenant), host_(host) {}

  ReadScheduler& turns_;
  const base::Lifetime::Watch alive_;  // whether turns_ is there
  const std::string tenant_;
  const Host host_;
  std::function<void()> begin_, too_slow_;
  State state_ = State::kWaits;
  std::list<Turn*>::iterator place_;
  Clock::time_point since_;  // while it reads
};

// Answers that clients have not taken yet: how many there may be, and how many bytes of them.

// A client that asks for large values and reads none of the answers has them kept by gRPC, each a
// copy of its own. When all of these are more than the limit, the connection of the oldest is
// ended: a client that reads takes an answer in milliseconds, and one whose network is slow asks
// again.
//
// A call whose answer is not taken is there until it is, however small the answer: it keeps its
// place at the gate (net/call_gate.h), and a client that held back as many as there may be would
// keep all others out. So beyond a number of them those that are older than `patience` are ended as
// well. Many calls may be answered at once (the last arrives at a barrier), and those are younger.
//
// Lives on the loop's thread.
class UnreadResponses {
 public:
  using Id = std::uint64_t;
  struct Limits {
    std::size_t bytes = 0;
    std::size_t answers = 0;
    std::chrono::milliseconds patience{};
  };

  // `drop` ends the connection from there; what was to be answered over it is over soon afterwards.
  UnreadResponses(boost::asio::io_context& loop, const Limits& limits,
                  std::function<void(const Peer&)> drop)
      : limits_(limits), drop_(std::move(drop)), overdue_(loop) {}
  UnreadResponses(const UnreadResponses&) = delete;
  UnreadResponses& operator=(const UnreadResponses&) = delete;

  // An answer of that size is on its way to that peer, until it is Taken.
  Id Add(const Peer& peer, std::size_t bytes);
  void Taken(Id id);

  std::size_t bytes() const { return bytes_; }
  // Answers whose connection was ended, since the beginning.
  std::uint64_t dropped_for_bytes() const { return dropped_for_bytes_; }
  std::uint64_t dropped_for_number() const { return dropped_for_number_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    Peer peer;
    std::size_t bytes = 0;
    Clock::time_point since;
    bool dropped = false;
  };

  void Drop(Answer& answer, std::uint64_t& count);
  void AwaitOverdue();
  void DropOverdue();

  const Limits limits_;
  const std::function<void(const Peer&)> drop_;
  std::map<Id, Answer> answers_;  // the oldest first
  Id next_ = 1;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_for_bytes_ = 0;
  std::uint64_t dropped_for_number_ = 0;
  base::Timer overdue_;
};

// How many messages may be read before their calls have been looked at.

// Nearly every message is there when its call is. To read it at once, on gRPC's thread, spares the
// call a turn of the loop, and the loop what gRPC does to read. A few at a time are as good as many
// while clients send their messages whole; those of others take their turn (ReadScheduler).
//
// On any thread.
class EarlyReads {
 public:
  explicit EarlyReads(int most) : left_(most) {}

  // Whether one more may begin. It has to be ended.
  bool Begin() {
    if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return true;
    End();
    return false;
  }
  void End() { left_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<int> left_;
};

}  // namespace muster::rendezvous
