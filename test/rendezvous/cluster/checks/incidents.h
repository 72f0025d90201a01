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
  kSpare,
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
};
inline constexpr std::array<std::string_view, 64> kIncidentNames = {
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
    "spare",
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
    "call cancelled before it came"};
static_assert(static_cast<std::size_t>(Incident::kCancelledBeforeItCame) + 1 ==
              kIncidentNames.size());

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
