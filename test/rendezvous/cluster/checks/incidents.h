// How often each kind of incident happened in simulated clusters. What never happened proves
// nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::rendezvous {

// Each as CALL(name, what it is called in reports).
#define MUSTER_INCIDENTS(CALL)                                             \
  /* Faults. */                                                            \
  CALL(kPartition, "partition")                                            \
  CALL(kOneWayUp, "one-way loss up")                                       \
  CALL(kOneWayDown, "one-way loss down")                                   \
  CALL(kSlowNetwork, "slow network")                                       \
  CALL(kLossyNetwork, "lossy network")                                     \
  CALL(kConnectionCut, "connection cut")                                   \
  CALL(kHalfOpen, "half-open connection")                                  \
  CALL(kRefusedBetween, "refused by something in between")                 \
  CALL(kAgentStopped, "agent stopped")                                     \
  CALL(kAgentStoppedLong, "agent stopped long")                            \
  CALL(kAgentStoppedForMinutes, "agent stopped for minutes")               \
  CALL(kAgentKilled, "agent killed")                                       \
  CALL(kAgentTerminated, "agent terminated")                               \
  CALL(kNodeDrained, "node drained")                                       \
  CALL(kPowerLoss, "power loss")                                           \
  CALL(kDaemonKilled, "daemon killed")                                     \
  CALL(kDaemonPowerLoss, "daemon power loss")                              \
  CALL(kKeeperKilled, "daemon killed with its keeper")                     \
  CALL(kDaemonHalted, "daemon halted")                                     \
  CALL(kDiskSlow, "disk slow")                                             \
  CALL(kDiskFull, "disk full")                                             \
  CALL(kDiskBroken, "disk broken")                                         \
  CALL(kSwizzle, "swizzle")                                                \
  /* Their consequences. */                                                \
  CALL(kBatchKept, "unsynced batch kept")                                  \
  CALL(kBatchLost, "unsynced batch lost")                                  \
  CALL(kConnectionRefused, "connection refused")                           \
  CALL(kConnectTimeout, "connect timeout")                                 \
  CALL(kToldOfPause, "told by a knock: paused")                            \
  CALL(kToldOfEnd, "told by a knock: gone")                                \
  CALL(kDoubted, "connection doubted")                                     \
  CALL(kResumed, "resumed")                                                \
  CALL(kEvicted, "evicted")                                                \
  CALL(kFenced, "agent fenced itself")                                     \
  CALL(kGuardStruck, "guard struck")                                       \
  CALL(kDeathTold, "guard told of a death")                                \
  CALL(kAssignmentHeld, "assignment held for a short lease")               \
  CALL(kFencedReport, "report fenced")                                     \
  CALL(kRestored, "job restored")                                          \
  CALL(kWorkerFailed, "worker failed")                                     \
  CALL(kTermIgnored, "SIGTERM ignored")                                    \
  CALL(kEndsSlowly, "SIGTERM answered slowly")                             \
  CALL(kGraceOver, "grace over")                                           \
  CALL(kLeftovers, "workers left something behind")                        \
  CALL(kLeftBehind, "SIGKILL given up")                                    \
  CALL(kUnkillable, "killed process stays in the kernel")                  \
  CALL(kStopsWhileItStarts, "stopped while it started workers")            \
  CALL(kUnfit, "node unfit")                                               \
  CALL(kStartTooLate, "start too late")                                    \
  CALL(kGraceKept, "grace kept when the rendezvous is gone")               \
  CALL(kLeftInPeace, "job whose nodes are left in peace")                  \
  CALL(kRestart, "restart")                                                \
  CALL(kRoundShrank, "round with fewer nodes than the one before")         \
  CALL(kRoundGrew, "round with more nodes than the one before")            \
  CALL(kRankKept, "rank kept")                                             \
  CALL(kSpare, "spare")                                                    \
  CALL(kMayLeave, "drained node may leave")                                \
  CALL(kHasToStay, "drained node has to stay")                             \
  CALL(kVerdictSucceeded, "verdict: succeeded")                            \
  CALL(kVerdictFailed, "verdict: worker failed")                           \
  CALL(kVerdictTimeout, "verdict: join timeout")                           \
  CALL(kJobForgotten, "job forgotten")                                     \
  CALL(kRefused, "connection refused by the core")                         \
  CALL(kStoreAcknowledged, "store acknowledged")                           \
  CALL(kStoreRefused, "store refused")                                     \
  CALL(kStoreUnanswered, "store unanswered")                               \
  CALL(kWaitOver, "wait over")                                             \
  CALL(kWaitTimedOut, "wait timed out")                                    \
  CALL(kWaitCancelled, "wait cancelled")                                   \
  CALL(kHeldCallCancelled, "call cancelled while its answer was held")     \
  CALL(kCancelledBeforeItCame, "call cancelled before it came")            \
  /* Where several daemons take turns: faults, */                          \
  CALL(kLeaderKilled, "leading daemon killed")                             \
  CALL(kStandbyKilled, "daemon that stands by killed")                     \
  CALL(kStandbyPowerLoss, "host of one of several daemons lost its power") \
  CALL(kStandbyTerminated, "one of several daemons told to end")           \
  CALL(kLeaderHalted, "leading daemon halted")                             \
  CALL(kStandbyHalted, "daemon that stands by halted")                     \
  CALL(kCutFromEtcd, "daemon cut off from etcd")                           \
  CALL(kBadWayToEtcd, "daemon's way to etcd slow and lossy")               \
  CALL(kCutFromAgents, "daemon cut off from all agents")                   \
  CALL(kEtcdFull, "etcd full")                                             \
  CALL(kEtcdSlow, "etcd slow")                                             \
  CALL(kEtcdAway, "etcd away")                                             \
  CALL(kLeasesExtended, "etcd's leases extended")                          \
  CALL(kDiedInLargeBatch, "daemon died in a large batch")                  \
  /* and their consequences. */                                            \
  CALL(kTookOver, "another daemon took over")                              \
  CALL(kLeadLost, "lead lost")                                             \
  CALL(kFrozen, "daemon that led says nothing more")                       \
  CALL(kLargeBatch, "large batch")                                         \
  CALL(kBatchWithoutSpace, "batch without space in etcd")                  \
  CALL(kDeathToldToTheNext, "guard told the next daemon of a death")

enum class Incident {
#define MUSTER_INCIDENT(name, words) name,
  MUSTER_INCIDENTS(MUSTER_INCIDENT)
#undef MUSTER_INCIDENT
};
inline constexpr auto kIncidentNames = std::to_array<std::string_view>({
#define MUSTER_INCIDENT(name, words) words,
    MUSTER_INCIDENTS(MUSTER_INCIDENT)
#undef MUSTER_INCIDENT
});

// What only one daemon with a disk, or only several with an etcd, can meet.
inline constexpr bool IsOfOneDaemon(Incident what) {
  switch (what) {
    case Incident::kDaemonKilled:
    case Incident::kDaemonPowerLoss:
    case Incident::kKeeperKilled:
    case Incident::kDaemonHalted:
    case Incident::kDiskSlow:
    case Incident::kDiskFull:
    case Incident::kDiskBroken:
    case Incident::kToldOfPause:
    case Incident::kToldOfEnd:
    case Incident::kGraceKept:
      return true;
    default:
      return false;
  }
}
inline constexpr bool IsOfSeveralDaemons(Incident what) {
  return what >= Incident::kLeaderKilled;
}

class Incidents {
 public:
  void Count(Incident what) { ++counts_[static_cast<std::size_t>(what)]; }
  void Add(const Incidents& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  // In the order of kIncidentNames.
  const std::array<std::int64_t, kIncidentNames.size()>& counts() const { return counts_; }

 private:
  std::array<std::int64_t, kIncidentNames.size()> counts_{};
};

}  // namespace muster::rendezvous
