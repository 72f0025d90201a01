// How often each kind of incident happened in simulated clusters. What never happened proves
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster::rendezvous {

enum class Incident {
  // Faults.
  kPartition,
  kOneWayUp,
  kOneWayDown,
  kSlowNetwork,
  kLossyNetwork,
  kConnectionCut,
  kHalfOpen,
  kRefusedBetween,
  kAgentStopped,
  kAgentStoppedLong,
  kAgentStoppedForMinutes,
  kAgentKilled,
  kAgentTerminated,
  kNodeDrained,
  kPowerLoss,
  kDaemonKilled,
  kDaemonPowerLoss,
  kKeeperKilled,
  kDaemonHalted,
  kDiskSlow,
  kDiskFull,
  kDiskBroken,
  kSwizzle,
  // Their consequences.
  kBatchKept,
  kBatchLost,
  kConnectionRefused,
  kConnectTimeout,
  kToldOfPause,
  kToldOfEnd,
  kDoubted,
  kResumed,
  kEvicted,
  kFenced,
  kGuardStruck,
  kDeathTold,
  kAssignmentHeld,
  kFencedReport,
  kRestored,
  kWorkerFailed,
  kTermIgnored,
  kEndsSlowly,
  kGraceOver,
  kLeftovers,
  kLeftBehind,
  kUnkillable,
  kStopsWhileItStarts,
  kUnfit,
  kStartTooLate,
  kGraceKept,
  kLeftInPeace,
  kRestart,
  kRoundShrank,
  kRoundGrew,
  kRankKept,
  kSpare,
  kMayLeave,
  kHasToStay,
  kVerdictSucceeded,
  kVerdictFailed,
  kVerdictTimeout,
  kJobForgotten,
  kRefused,
  kStoreAcknowledged,
  kStoreRefused,
  kStoreUnanswered,
  kWaitOver,
  kWaitTimedOut,
  kWaitCancelled,
  kHeldCallCancelled,
  kCancelledBeforeItCame,
  // Where several daemons take turns: faults,
  kLeaderKilled,
  kStandbyKilled,
  kStandbyPowerLoss,
  kStandbyTerminated,
  kLeaderHalted,
  kStandbyHalted,
  kCutFromEtcd,
  kBadWayToEtcd,
  kCutFromAgents,
  kEtcdFull,
  kEtcdSlow,
  kEtcdAway,
  kLeasesExtended,
  kDiedInLargeBatch,
  // and their consequences.
  kTookOver,
  kLeadLost,
  kFrozen,
  kLargeBatch,
  kBatchWithoutSpace,
  kDeathToldToTheNext,
};
inline constexpr std::array<std::string_view, 90> kIncidentNames = {
    "partition",
    "one-way loss up",
    "one-way loss down",
    "slow network",
    "lossy network",
    "connection cut",
    "half-open connection",
    "refused by something in between",
    "agent stopped",
    "agent stopped long",
    "agent stopped for minutes",
    "agent killed",
    "agent terminated",
    "node drained",
    "power loss",
    "daemon killed",
    "daemon power loss",
    "daemon killed with its keeper",
    "daemon halted",
    "disk slow",
    "disk full",
    "disk broken",
    "swizzle",
    "unsynced batch kept",
    "unsynced batch lost",
    "connection refused",
    "connect timeout",
    "told by a knock: paused",
    "told by a knock: gone",
    "connection doubted",
    "resumed",
    "evicted",
    "agent fenced itself",
    "guard struck",
    "guard told of a death",
    "assignment held for a short lease",
    "report fenced",
    "job restored",
    "worker failed",
    "SIGTERM ignored",
    "SIGTERM answered slowly",
    "grace over",
    "workers left something behind",
    "SIGKILL given up",
    "killed process stays in the kernel",
    "stopped while it started workers",
    "node unfit",
    "start too late",
    "grace kept when the rendezvous is gone",
    "job whose nodes are left in peace",
    "restart",
    "round with fewer nodes than the one before",
    "round with more nodes than the one before",
    "rank kept",
    "spare",
    "drained node may leave",
    "drained node has to stay",
    "verdict: succeeded",
    "verdict: worker failed",
    "verdict: join timeout",
    "job forgotten",
    "connection refused by the core",
    "store acknowledged",
    "store refused",
    "store unanswered",
    "wait over",
    "wait timed out",
    "wait cancelled",
    "call cancelled while its answer was held",
    "call cancelled before it came",
    "leading daemon killed",
    "daemon that stands by killed",
    "host of one of several daemons lost its power",
    "one of several daemons told to end",
    "leading daemon halted",
    "daemon that stands by halted",
    "daemon cut off from etcd",
    "daemon's way to etcd slow and lossy",
    "daemon cut off from all agents",
    "etcd full",
    "etcd slow",
    "etcd away",
    "etcd's leases extended",
    "daemon died in a large batch",
    "another daemon took over",
    "lead lost",
    "daemon that led says nothing more",
    "large batch",
    "batch without space in etcd",
    "guard told the next daemon of a death"};
static_assert(static_cast<std::size_t>(Incident::kDeathToldToTheNext) + 1 == kIncidentNames.size());

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
