// What happened to a job, on one clock: the value that all views show. docs/replay.md defines each
// time and the goodput.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launcher/replay/clocks.h"
#include "launcher/replay/job_events.h"

namespace muster::launcher {

// Since the timeline's origin.
using Offset = std::chrono::nanoseconds;

// Something that happened at one moment.
struct Incident {
  Offset at{0};
  AgentEventKind kind = AgentEventKind::kJoining;
  std::size_t node = 0;  // of Timeline::nodes
  int rank = -1;
  std::string what;  // as a phrase: "rank 3 exited with code 1"
};

// A node's part in a round.
struct RoundNode {
  std::size_t node = 0;  // of Timeline::nodes
  int node_rank = 0;
  int first_rank = 0;
  int workers = 1;
  Offset assigned{0};
  std::optional<Offset> started;
  // When no worker was left, and how they ended: "succeeded", "failed" or "stopped". Empty: the log
  // does not say.
  std::optional<Offset> gone;
  std::string end;
  // The rank whose failure its agent saw first; -1: none.
  int failed_rank = -1;
};

struct RoundSpan {
  rendezvous::RoundNumber number = 0;
  int nodes = 1;  // also those without a log
  int world_size = 1;
  std::vector<RoundNode> members;  // those with a log, by node rank
  Offset gathered{0};              // the last of them had its place
  std::optional<Offset> started;   // the workers of all of them ran, as far as is known
  std::optional<Offset> progress;  // the first worker said that it makes progress
  std::optional<Offset> detected;  // the first sign that the round is over
  std::optional<Offset> stopped;   // the last worker was gone
  Offset ended{0};                 // detected, or else stopped, or else where the logs end
  // Why it ended, in one line; "succeeded" if nothing went wrong.
  std::string cause;
  std::vector<Incident> incidents;  // that led to its end, by time
  bool got_further = false;
};

// From a round that ended to the next one. Each time is at or after the one before it.
struct RestartCost {
  rendezvous::RoundNumber from = 0;
  rendezvous::RoundNumber to = 0;
  std::string cause;
  Offset detected{0};
  Offset stopped{0};
  Offset gathered{0};
  std::optional<Offset> started;
  std::optional<Offset> progress;

  // Until the workers of the next round ran; nullopt if they never did.
  std::optional<Offset> Cost() const {
    return started ? std::optional<Offset>(*started - detected) : std::nullopt;
  }
};

struct TimelineNode {
  std::string id;
  NodeClock clock;
  Offset first{0};
  Offset last{0};
};

struct Timeline {
  std::string job;
  std::chrono::nanoseconds origin{0};  // of the first line, since 1970
  Offset length{0};                    // to the last line
  std::vector<TimelineNode> nodes;
  std::vector<RoundSpan> rounds;
  std::vector<RestartCost> restarts;
  std::vector<Incident> incidents;  // of all nodes, by time, also those that ended no round
  // Whether any worker said that it makes progress.
  bool has_beats = false;
  // For how long workers of rounds that got further ran.
  Offset useful{0};
  std::string verdict;  // empty: no log has one
  // What is missing and what was done about it, in sentences.
  std::vector<std::string> notes;

  // The share of the time, from 0 to 1.
  double Goodput() const;
};

Timeline MakeTimeline(JobEvents events);

}  // namespace muster::launcher
