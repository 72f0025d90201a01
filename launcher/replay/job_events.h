// Selects the events of one job, and aligns the clocks of its nodes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "launcher/replay/event_file.h"

namespace muster::launcher {

// One incarnation of one job.
struct JobEvents {
  std::string job;
  // One entry per agent, sorted by node id; none is empty. Its events are in order of its own
  // clock.
  std::vector<NodeEvents> nodes;
  std::vector<std::string> notes;
};

// Merges the files' events by node, and selects the incarnation of `job` that ended last; an empty
// `job` means the only one. An error, one sentence: there are several jobs and none is named, or
// the named one is not there.
absl::StatusOr<JobEvents> ChooseJob(std::vector<EventFile> files, const std::string& job);

// One clock for the events of all nodes.

// How one node's clock was aligned with the others'.
struct NodeClock {
  // Added to the node's CLOCK_MONOTONIC, gives the common clock: time since 1970.
  std::chrono::nanoseconds shift{0};
  // How far that is from the node's own wall clock at the start of the log.
  std::chrono::nanoseconds moved{0};
  // How many moments the node shares with others; 0: its own wall clock is used. The reference is
  // not moved.
  int common = 0;
  bool is_reference = false;
  // How far the wall clock was set forward (negative: back) while the log was written. That moves
  // no event, as CLOCK_MONOTONIC measures durations.
  std::chrono::nanoseconds stepped{0};
};

// Smaller differences may be message delays and are ignored.
inline constexpr std::chrono::milliseconds kArrival{20};
// CLOCK_MONOTONIC starts at boot. If wall clock minus monotonic clock is equal on two nodes, to
// within this (lines have milliseconds), they are on one machine and share a clock.
inline constexpr std::chrono::milliseconds kSameMachine{2};

// A clock for each of `nodes`, all of which must have events. The rendezvous informs all nodes of a
// round at once when it begins (`assigned`) and when it is over (`told_to_stop`): these moments are
// common to the nodes. The reference is the first node with the most moments, and the common clock
// is its wall clock. Other nodes are shifted by the median difference at the moments that they
// share with aligned nodes; nodes on one machine get the same clock.
std::vector<NodeClock> AlignClocks(const std::vector<NodeEvents>& nodes);

}  // namespace muster::launcher
