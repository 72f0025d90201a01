// What a simulated cluster must never do, and the first violation found.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace muster::rendezvous {

enum class Check {
  kRoundOrder,  // I1: a job's (incarnation, round) only grows, also across restarts of the daemon
  kOverlap,     // I2: workers of two rounds of a job never run at the same time
  kLongLived,   // I2: workers are dead when their lease ends
  kGrace,       // I2: workers are not killed early if their ranks are not given away
  kRanks,       // I3: ranks of a round are a bijection, and all its nodes are told the same
  kStale,    // I4: messages about another round or from an old connection change nothing, others do
  kDurable,  // I5: whatever the daemon says is on the disk
  kRestored,     // I5: a restarted daemon knows what the previous one wrote
  kStore,        // I5: stores are linearizable, and nothing acknowledged is lost
  kRevived,      // I6: a node that lost its place is not brought back by an earlier message
  kNextLife,     // I7: no agent that has run in one life of a job runs in the next
  kBudget,       // I8: restarts are counted once, and are at most the allowed number
  kAnswered,     // I9: once the faults are over, everyone who waits is answered
  kBounds,       // I10: nothing grows without bound
  kUndisturbed,  // the death and return of the daemon end no round
  kVerdict,      // a job has one verdict, and it is true
  kOneSpeaks,    // of several daemons, only one is heard at a time
  kTurnedAway,   // no node is refused or given up without cause
  kMembers,      // a round runs with as many nodes as it should, all of which are there and none of
                 // which still stops the one before; none waits while there is a place
  kEnoughStay,   // a node that asks may leave only if enough others stay, and nothing is undone
  kForgotten,    // a job is forgotten when its last agent is gone and none can come back
  kDescribed,    // what is shown of a job is so
};
inline constexpr std::array<std::string_view, 22> kCheckNames = {
    "I1 round order", "I2 overlap", "I2 outlived lease", "I2 grace",   "I3 ranks",
    "I4 stale",       "I5 durable", "I5 restored",       "I5 store",   "I6 revived",
    "I7 next life",   "I8 budget",  "I9 answered",       "I10 bounds", "undisturbed",
    "verdict",        "one speaks", "turned away",       "members",    "enough stay",
    "forgotten",      "described"};
static_assert(static_cast<std::size_t>(Check::kDescribed) + 1 == kCheckNames.size());

class Violations {
 public:
  void Add(Check check, std::string sentence) {
    if (any_) return;
    any_ = true;
    check_ = check;
    sentence_ = std::move(sentence);
  }
  bool any() const { return any_; }
  // Of the first.
  std::string_view check() const { return kCheckNames[static_cast<std::size_t>(check_)]; }
  const std::string& sentence() const { return sentence_; }

 private:
  bool any_ = false;
  Check check_ = Check::kRoundOrder;
  std::string sentence_;
};

}  // namespace muster::rendezvous
