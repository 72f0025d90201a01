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

// What the ranks of one node have told in `round`: those of which there is news.
struct Progress {
  RoundId round;
  std::vector<RankProgress> ranks;

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
