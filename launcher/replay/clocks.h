// One clock for the events of all nodes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/replay/event_file.h"

namespace muster::launcher {

// How the clock of one node was brought into line with the others'.
struct NodeClock {
  // Add this to the node's CLOCK_MONOTONIC to get the common clock: time since 1970.
  std::chrono::nanoseconds shift{0};
  // By how much that differs from the node's own wall clock at the log's beginning.
  std::chrono::nanoseconds moved{0};
  // How many moments this node has in common with the others; 0: its own wall clock is taken as it
  // is. The reference has `is_reference` and is not moved.
  int common = 0;
  bool is_reference = false;
  // How far the wall clock was set forwards (or back, below zero) while the log was written. That
  // moves nothing here, as durations are CLOCK_MONOTONIC's.
  std::chrono::nanoseconds stepped{0};
};

// Differences of less than this may be what messages take to arrive, and are left alone.
inline constexpr std::chrono::milliseconds kArrival{20};
// CLOCK_MONOTONIC begins when a machine does. Where wall clock and monotonic clock are as far apart
// on two nodes, to within this (lines have milliseconds), the two are one machine, with one clock.
inline constexpr std::chrono::milliseconds kSameMachine{2};

// A clock for each of `nodes`, which all have events. The rendezvous tells all nodes of a round in
// one turn of its loop that the round begins (`assigned`) and that it is over (`told_to_stop`).
// These moments are common to the nodes. The reference is the node that has the most of them, and
// of several the first; another node's clock differs by the median of the differences at the
// moments that it shares with nodes whose clocks are known, and by nothing from the clock of a node
// on the same machine. The common clock is the reference's wall clock.
std::vector<NodeClock> AlignClocks(const std::vector<NodeEvents>& nodes);

}  // namespace muster::launcher
