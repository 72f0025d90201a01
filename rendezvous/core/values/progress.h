// The ranks' progress, as their workers report it in beats (docs/observing.md). Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// How long one part of a step takes.
struct PhaseTime {
  std::string name;
  double seconds = 0;
  // The rank waits for others during this phase. In synchronous training all ranks' steps take
  // equally long; only the time in which a rank does not wait shows which one is slow.
  bool waits = false;

  bool operator==(const PhaseTime&) const = default;
};

// The last report of one rank.
struct RankProgress {
  int local_rank = 0;
  std::optional<std::int64_t> step;
  // Age of its last beat when this is sent.
  Duration ago{};
  std::optional<double> loss;  // may be any number, also not finite
  std::optional<double> samples_per_second;
  // Medians of its last steps: from beat to beat, and of each phase, in the worker's order.
  std::optional<double> step_seconds;
  std::vector<PhaseTime> phases;
  // Steps of this round for which it has reported phases.
  std::int64_t timed_steps = 0;

  bool operator==(const RankProgress&) const = default;
};

// The name at the value's place; "unknown": there is none. The names are those of all values up to
// `kLast`.
template <auto kLast, std::size_t kCount>
constexpr const char* NameAt(const char* const (&names)[kCount], decltype(kLast) value) {
  static_assert(kCount == static_cast<std::size_t>(kLast) + 1);
  const auto at = static_cast<std::size_t>(value);
  return at < kCount ? names[at] : "unknown";
}

// What is wrong with a rank of a running round.
enum class RankAlertKind {
  kOther,       // a kind that only a newer Muster knows
  kStopped,     // by SIGSTOP or the like
  kSilent,      // shows no sign of life
  kOutputLost,  // its log file did not take all of its output
};

// "stopped": for metric labels and JSON.
constexpr const char* Name(RankAlertKind kind) {
  constexpr const char* kNames[] = {"other", "stopped", "silent", "output_lost"};
  return NameAt<RankAlertKind::kOutputLost>(kNames, kind);
}
inline constexpr int kRankAlertKinds = static_cast<int>(RankAlertKind::kOutputLost) + 1;

// A problem that the agent has noticed in a rank and that persists.
struct RankAlert {
  int local_rank = 0;
  RankAlertKind kind = RankAlertKind::kOther;
  // A phrase that follows "rank 3": "was stopped by SIGSTOP".
  std::string what;
  // Time since it was noticed, when this is sent.
  Duration ago{};

  bool operator==(const RankAlert&) const = default;
};

// What the ranks of one node have reported in `round`: only ranks with news.
struct Progress {
  RoundId round;
  std::vector<RankProgress> ranks;
  // All current problems of the node's ranks; nullopt: unchanged since the last report.
  std::optional<std::vector<RankAlert>> alerts{};

  bool is_news() const { return !ranks.empty() || alerts.has_value(); }

  bool operator==(const Progress&) const = default;
};

// How much slower than the others a rank is.
struct Straggling {
  // By how much its own time exceeds the median's, as a share: 0.5 is half as long again.
  double slower = 0;
  // The phase that contributes most.
  std::string phase;
  // Time since it was detected.
  Duration age{};

  bool operator==(const Straggling&) const = default;
};

// The part of a step's time in which the rank does not wait for others; nullopt: not reported.
inline std::optional<double> OwnSeconds(const RankProgress& rank) {
  std::optional<double> own;
  for (const PhaseTime& phase : rank.phases) {
    if (!phase.waits) own = own.value_or(0) + phase.seconds;
  }
  return own;
}

// The events in a job's life that metrics count.

// Why a round that ran, or gathered, was followed by another.
enum class RoundEnd {
  kWorkerFailed,    // one restart is spent
  kNodeLost,        // a member fell silent, or left without its workers having succeeded
  kNodeLeaving,     // a member announced that it will leave
  kNodeJoined,      // a newcomer found a place
  kNodeRejoined,    // a member starts over
  kNodeOutOfTouch,  // a worker failed while another node was out of touch; costs no restart
};

// "worker_failed": for metric labels, HTTP and JSON.
constexpr const char* Name(RoundEnd end) {
  constexpr const char* kNames[] = {"worker_failed", "node_lost",     "node_leaving",
                                    "node_joined",   "node_rejoined", "node_out_of_touch"};
  return NameAt<RoundEnd::kNodeOutOfTouch>(kNames, end);
}
inline constexpr int kRoundEnds = static_cast<int>(RoundEnd::kNodeOutOfTouch) + 1;

// "worker_failed": how a job ended, for metric labels and JSON.
constexpr const char* Name(VerdictKind kind) {
  constexpr const char* kNames[] = {"succeeded", "worker_failed", "join_timeout", "closed"};
  return NameAt<VerdictKind::kClosed>(kNames, kind);
}
inline constexpr int kVerdictKinds = static_cast<int>(VerdictKind::kClosed) + 1;

struct RoundStarted {
  // From the round's opening, which is the end of the one before, until its members were told their
  // ranks.
  Duration gathered{};
  // Whether a round of the job has run before.
  bool is_restart = false;
};
// All workers of the round have started.
struct RoundRuns {
  // Time since the end of the last round in which all workers ran; nullopt: there was none.
  std::optional<Duration> recovered;
};
struct RoundOver {
  RoundEnd why = RoundEnd::kWorkerFailed;
  // Since its start; nullopt: it never ran.
  std::optional<Duration> ran;
  // How long before that the event that ended it happened, as far as that can be known (job.h);
  // nullopt: nothing had failed.
  std::optional<Duration> detected{};
};
struct JobEnded {
  VerdictKind how = VerdictKind::kSucceeded;
  // As in RoundOver.
  std::optional<Duration> detected{};
};

}  // namespace muster::rendezvous
