// How often each kind of event happened in a simulation. A run in which something never happened
// proves nothing about it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster::rendezvous {

enum class Happening {
  kRoundStarted,
  kRoundShrank,      // fewer nodes than the previous round
  kScaleUp,          // more nodes than the previous round
  kRankKept,         // a member of the previous round keeps its rank
  kRestart,          // a worker failed and the job continued
  kSpareWaits,       // a node was told that it is a spare
  kSparePromoted,    // a spare got a place
  kFenced,           // a message from an old round was answered with Fenced
  kUnheard,          // an event from an agent that no longer attends
  kRefused,          // a join was refused
  kLeaseExpired,     // a silent node was removed
  kLost,             // a stream ended without a goodbye
  kDrained,          // a node sent Leaving while its workers ran
  kMayLeave,         // a node asked whether it may leave, and the job could go on without it
  kHasToStay,        // or could not
  kLeftWhileAsking,  // a node left a round that was gathering
  kJoinAfterEnd,     // a node joined a job that already had its verdict
  kHalt,             // the clock jumped, and no lease expired because of it
  kSucceeded,        // the four verdicts
  kWorkerFailed,
  kJoinTimeout,
  kClosed,
  kJobForgotten,
};
inline constexpr std::array<std::string_view, 23> kHappeningNames = {"round started",
                                                                     "round shrank",
                                                                     "scale-up",
                                                                     "rank kept",
                                                                     "restart",
                                                                     "spare waits",
                                                                     "spare promoted",
                                                                     "fenced",
                                                                     "unheard",
                                                                     "join refused",
                                                                     "lease expired",
                                                                     "node lost",
                                                                     "node drained",
                                                                     "node may leave",
                                                                     "node has to stay",
                                                                     "left while asking",
                                                                     "join after end",
                                                                     "halt",
                                                                     "verdict: succeeded",
                                                                     "verdict: worker failed",
                                                                     "verdict: join timeout",
                                                                     "verdict: closed",
                                                                     "job forgotten"};

class Coverage {
 public:
  void Count(Happening what) { ++counts_[static_cast<std::size_t>(what)]; }
  void Add(const Coverage& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  // In the order of kHappeningNames.
  const std::array<std::int64_t, kHappeningNames.size()>& counts() const { return counts_; }
  std::int64_t operator[](Happening what) const { return counts_[static_cast<std::size_t>(what)]; }

 private:
  std::array<std::int64_t, kHappeningNames.size()> counts_{};
};
static_assert(static_cast<std::size_t>(Happening::kJobForgotten) + 1 == kHappeningNames.size());

}  // namespace muster::rendezvous
