// What happened to a job, on one clock: the value behind all views. docs/observing.md defines each
// time and the goodput.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launcher/replay/job_events.h"

namespace muster::launcher {

// Time since the timeline's origin.
using Offset = std::chrono::nanoseconds;

// An event at one moment.
struct Incident {
  Offset at{0};
  AgentEventKind kind = AgentEventKind::kJoining;
  std::size_t node = 0;  // index in Timeline::nodes
  int rank = -1;
  std::string what;  // a phrase: "rank 3 exited with code 1"
};

// A node's part in a round.
struct RoundNode {
  std::size_t node = 0;  // index in Timeline::nodes
  int node_rank = 0;
  int first_rank = 0;
  int workers = 1;
  Offset assigned{0};
  std::optional<Offset> started;
  // When the last worker was gone, and how they ended: "succeeded", "failed" or "stopped". Empty if
  // the log does not say.
  std::optional<Offset> gone;
  std::string end;
  // The rank whose failure its agent saw first; -1 if none.
  int failed_rank = -1;
};

struct RoundSpan {
  rendezvous::RoundNumber number = 0;
  int nodes = 1;  // including those without a log
  int world_size = 1;
  std::vector<RoundNode> members;  // those with a log, by node rank
  Offset gathered{0};              // when the last of them had its place
  std::optional<Offset> started;   // when the workers of all of them ran, as far as known
  std::optional<Offset> progress;  // the first report of progress by a worker
  std::optional<Offset> detected;  // the first sign that the round is over
  std::optional<Offset> stopped;   // when the last worker was gone
  Offset ended{0};                 // detected, else stopped, else the end of the logs
  // Why it ended, in one line; "succeeded" if nothing went wrong.
  std::string cause;
  std::vector<Incident> incidents;  // that led to its end, by time
  bool got_further = false;
};

// From the end of one round to the next. No time is before the previous one.
struct RestartCost {
  rendezvous::RoundNumber from = 0;
  rendezvous::RoundNumber to = 0;
  std::string cause;
  Offset detected{0};
  Offset stopped{0};
  Offset gathered{0};
  std::optional<Offset> started;
  std::optional<Offset> progress;

  // The time until the next round's workers ran; nullopt if they never did.
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
  std::vector<Incident> incidents;  // of all nodes, by time, including those that ended no round
  // Whether any worker reported progress.
  bool has_beats = false;
  // How long workers ran in rounds that got further.
  Offset useful{0};
  std::string verdict;  // empty if no log has one
  // Sentences on what is missing, and what was done about it.
  std::vector<std::string> notes;

  // The share of useful time, from 0 to 1.
  double Goodput() const;
};

Timeline MakeTimeline(JobEvents events);

// Which events are shown, in which words, and which of them end a round.

// Whether it is more than a step of every normal round.
bool IsIncident(AgentEventKind kind);

// Whether it is a sign that its round is over.
bool EndsRound(AgentEventKind kind);

// "rank 3 exited with code 1"; "node n-1 received SIGTERM".
std::string DescribeIncident(const LoggedEvent& event, const std::string& node);

inline bool IsEarlier(const Incident& one, const Incident& other) {
  return one.at < other.at;
}

// Notes on what a timeline lacks: nodes without a log, and logs that end too early.

// Adds a note for each kind of gap, and for what was done about the clocks.
void NoteGaps(Timeline& timeline);

}  // namespace muster::launcher
