// Who ran which ranks of a job in its last rounds: whose agent keeps what they have printed.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/limits.h"
#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// A node's place in a round that has started.
struct LogPlace {
  AttendeeId attendee = 0;
  std::string host;
  int first_rank = 0;
  int workers = 0;
  // Its agent can bring what they print (NodeInfo).
  bool delivers = false;
};

struct LogPlacesOfRound {
  RoundNumber round = kNoRound;
  // Why the one before was over; empty: it is the first.
  std::string reason;
  // In order of their ranks.
  std::vector<LogPlace> places;
};

// The places of the round's members, who are in order of group rank; `attendees` are theirs, 0
// where one has left.
LogPlacesOfRound PlacesOf(RoundNumber round, const std::string& reason,
                          const std::vector<Placement>& members,
                          const std::vector<AttendeeId>& attendees);

// Nothing is decided by it, and no journal has it, as with JobHistory: after a restart of the
// daemon it is known of the current round alone. Deterministic; owned by the Job.
class LogPlaces {
 public:
  void Start(LogPlacesOfRound round) {
    rounds_.push_back(std::move(round));
    if (rounds_.size() > limits::kLogRounds.most) rounds_.pop_front();
  }

  // Those that are known, the last one last.
  const std::deque<LogPlacesOfRound>& rounds() const { return rounds_; }
  // The first that is later; null: there is none yet.
  const LogPlacesOfRound* FindAfter(RoundNumber round) const {
    for (const LogPlacesOfRound& known : rounds_) {
      if (known.round > round) return &known;
    }
    return nullptr;
  }

 private:
  std::deque<LogPlacesOfRound> rounds_;
};

}  // namespace muster::rendezvous
