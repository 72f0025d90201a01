// Answers that clients have not taken yet: how many there may be, and how many bytes of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

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
class UntakenAnswers {
 public:
  using Id = std::uint64_t;
  struct Limits {
    std::size_t bytes = 0;
    std::size_t answers = 0;
    std::chrono::milliseconds patience{};
  };

  // `drop` ends the connection from there; what was to be answered over it is over soon afterwards.
  UntakenAnswers(boost::asio::io_context& loop, const Limits& limits,
                 std::function<void(const Peer&)> drop)
      : limits_(limits), drop_(std::move(drop)), overdue_(loop) {}
  UntakenAnswers(const UntakenAnswers&) = delete;
  UntakenAnswers& operator=(const UntakenAnswers&) = delete;

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
  boost::asio::steady_timer overdue_;
  bool awaits_overdue_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
