// What a simulated cluster must never do, by name, and the first time that it did.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace muster::rendezvous {

enum class Check {
  kRoundOrder,   // I1: (incarnation, round) of a job only grows, also over the daemon's restarts
  kOverlap,      // I2: no two rounds' workers of a job run at one time
  kLongLived,    // I2: workers are dead when their lease is over
  kGrace,        // I2: nobody kills workers early whose ranks nobody gives away
  kRanks,        // I3: ranks of a round are a bijection, and its nodes are told one thing
  kStale,        // I4: what is about another round, or comes over an old connection, changes
                 //     nothing
  kDurable,      // I5: what is told is on the disk
  kRestored,     // I5: a restarted daemon knows what the last one had written
  kStore,        // I5: stores are linearizable, and nothing acknowledged is lost
  kRevived,      // I6: who has lost his place is not brought back by what he said before
  kNextLife,     // I7: nobody who has run in one life of a job runs in the next
  kBudget,       // I8: restarts are counted once, and are as many as there may be
  kAnswered,     // I9: once nothing goes wrong any more, whoever waits is answered
  kBounds,       // I10: nothing grows without bound
  kUndisturbed,  // a daemon that dies and comes back ends no round
  kVerdict,      // a job has one verdict, and it is true
  kTurnedAway,   // nobody is turned away or given up without cause
};
inline constexpr std::array<std::string_view, 17> kCheckNames = {
    "I1 round order", "I2 overlap",  "I2 outlived lease", "I2 grace",   "I3 ranks",     "I4 stale",
    "I5 durable",     "I5 restored", "I5 store",          "I6 revived", "I7 next life", "I8 budget",
    "I9 answered",    "I10 bounds",  "undisturbed",       "verdict",    "turned away"};
static_assert(static_cast<std::size_t>(Check::kTurnedAway) + 1 == kCheckNames.size());

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
