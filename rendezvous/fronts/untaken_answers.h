// Answers that clients have not taken yet: how many bytes of them there may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// A client that asks for large values and reads none of the answers has them kept by gRPC, each a
// copy of its own. When all of these are more than the limit, the connection of the oldest is
// ended: a client that reads takes an answer in milliseconds, and one whose network is slow asks
// again.
//
// Lives on the loop's thread.
class UntakenAnswers {
 public:
  using Id = std::uint64_t;

  // `drop` ends the connection from there; what was to be answered over it is over soon afterwards.
  UntakenAnswers(std::size_t most_bytes, std::function<void(const Peer&)> drop)
      : most_bytes_(most_bytes), drop_(std::move(drop)) {}
  UntakenAnswers(const UntakenAnswers&) = delete;
  UntakenAnswers& operator=(const UntakenAnswers&) = delete;

  // An answer of that size is on its way to that peer, until it is Taken.
  Id Add(const Peer& peer, std::size_t bytes);
  void Taken(Id id);

  std::size_t bytes() const { return bytes_; }

 private:
  struct Answer {
    Peer peer;
    std::size_t bytes = 0;
    bool dropped = false;
  };

  const std::size_t most_bytes_;
  const std::function<void(const Peer&)> drop_;
  std::map<Id, Answer> answers_;  // the oldest first
  Id next_ = 1;
  std::size_t bytes_ = 0;
};

}  // namespace muster::rendezvous
