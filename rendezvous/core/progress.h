// How far the ranks have come, as their workers tell in beats (docs/observing.md). Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// How long one part of a step takes.
struct PhaseTime {
  std::string name;
  double seconds = 0;
  // The rank waits for others meanwhile. In synchronous training all ranks' steps take the same
  // time, and only the time in which a rank does not wait tells who is slow.
  bool waits = false;

  bool operator==(const PhaseTime&) const = default;
};

// What one rank has told last.
struct RankProgress {
  int local_rank = 0;
  std::optional<std::int64_t> step;
  // Since its last beat, when this is said.
  Duration ago{};
  std::optional<double> loss;  // any number, also one that is not finite
  std::optional<double> samples_per_second;
  // Of its last steps the median: from beat to beat, and of each phase. The phases' order is the
  // worker's.
  std::optional<double> step_seconds;
  std::vector<PhaseTime> phases;
  // Steps of this round whose phases it has told.
  std::int64_t timed_steps = 0;

  bool operator==(const RankProgress&) const = default;
};

// What is wrong with a rank whose round goes on.
enum class TroubleKind {
  kOther,       // what only a newer Muster knows
  kStopped,     // by SIGSTOP or the like
  kSilent,      // gives no sign of life
  kOutputLost,  // its log file did not take all that it has printed
};

// "stopped": in labels of metrics and in JSON.
constexpr const char* Name(TroubleKind kind) {
  switch (kind) {
    case TroubleKind::kStopped:
      return "stopped";
    case TroubleKind::kSilent:
      return "silent";
    case TroubleKind::kOutputLost:
      return "output_lost";
    case TroubleKind::kOther:
      break;
  }
  return "other";
}
inline constexpr int kTroubleKinds = static_cast<int>(TroubleKind::kOutputLost) + 1;

// That its agent has noticed of a rank, and that is still so.
struct RankTrouble {
  int local_rank = 0;
  TroubleKind kind = TroubleKind::kOther;
  // A phrase that follows "rank 3": "was stopped by SIGSTOP".
  std::string what;
  // Since it was noticed, when this is said.
  Duration ago{};

  bool operator==(const RankTrouble&) const = default;
};

// What the ranks of one node have told in `round`: those of which there is news.
struct Progress {
  RoundId round;
  std::vector<RankProgress> ranks;
  // All that is wrong with ranks of the node; nullopt: as it was told before.
  std::optional<std::vector<RankTrouble>> troubles{};

  bool is_news() const { return !ranks.empty() || troubles.has_value(); }

  bool operator==(const Progress&) const = default;
};

// How much slower than the others a rank is.
struct Straggling {
  // By which share its own time is longer than the median's: 0.5 is half as long again.
  double slower = 0;
  // The phase that adds most to that.
  std::string phase;
  // Since it was found.
  Duration age{};

  bool operator==(const Straggling&) const = default;
};

// The time of a step in which the rank does not wait for others; nullopt: it does not tell.
inline std::optional<double> OwnSeconds(const RankProgress& rank) {
  std::optional<double> own;
  for (const PhaseTime& phase : rank.phases) {
    if (!phase.waits) own = own.value_or(0) + phase.seconds;
  }
  return own;
}

}  // namespace muster::rendezvous
