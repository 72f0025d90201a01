// What a silent rank is doing, according to /proc and its stacks, and whether it may just be
// waiting for other ranks. Pure: reads nothing.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/flight_report.h"
#include "worker/process/process_state.h"

namespace muster::worker {

// The main thread of a rank's program, observed twice.
struct Observation {
  TaskState before;
  TaskState after;
  // The time between both; 0: observed once.
  std::chrono::milliseconds watched{};
  // Names of the functions on its stack, innermost first; empty if unknown.
  std::vector<std::string> stack{};
};

struct Activity {
  enum class Kind {
    kUnknown,
    kMayWait,       // in a call that may also wait for other ranks
    kInCollective,  // its stack shows a collective operation
    kElsewhere,     // busy with something in which no other rank takes part
  };

  int rank = 0;
  Kind kind = Kind::kUnknown;
  // A phrase that follows "it": "sleeps", "reads /data/train.bin"; empty if unknown.
  std::string what;
  // As in Observation.
  std::vector<std::string> stack{};

  bool operator==(const Activity&) const = default;
};

// `seen` is nullopt if the rank could not be observed.
Activity ActivityOf(int rank, const std::optional<Observation>& seen);

// The one rank that does something else while all others wait or do the same: the others wait for
// it. `what` says what sets it apart. nullopt if no single rank stands out, or if one is unknown.
std::optional<Activity> FindOddOne(const std::vector<Activity>& ranks);

// The functions of process `pid`'s main thread in the output of gdb, eu-stack or py-spy, innermost
// first; empty if there are none.
std::vector<std::string> FirstThreadIn(std::string_view stacks, pid_t pid);

// Decides which rank to blame for a hang; reads nothing itself.

// A rank that may be to blame (HangWatch::Suspects).
struct HangSuspect {
  int rank = 0;
  // It or one of its descendants is stopped (SIGSTOP).
  bool stopped = false;
};

struct Culprit {
  int rank = 0;
  // It waits for others, and there is no sign that these are on this node: the rank to blame is
  // probably on another node.
  bool only_waits = false;
  // Whether the blame is certain; false: the round must end, and any rank will do.
  bool known = false;
  // What it does while the others wait, a phrase that follows "it"; empty if nothing sets it apart.
  std::string doing{};

  bool operator==(const Culprit&) const = default;
};

// `suspects` must not be empty; the first rank to fall silent comes first. Blames the stopped rank;
// else the one that the others wait for, by their logs in `flights`; else the one that does
// something else than all others (FindOddOne), by `activities`; else the only suspect. If several
// remain after one of these rules, the next one decides among them. Otherwise the cause is unknown,
// and the first rank to fall silent is chosen.
Culprit PickCulprit(const std::vector<HangSuspect>& suspects,
                    const std::vector<RankFlight>& flights,
                    const std::vector<Activity>& activities = {});

}  // namespace muster::worker
