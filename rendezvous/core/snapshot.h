// The state of a job as tools and pages see it: a copy, taken at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/milestone.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

enum class JobState { kGathering, kRunning, kEnded };

enum class NodeState {
  kJoined,     // has a place in the gathering round, or asks for one
  kStarting,   // has its Assignment, workers not yet reported started
  kRunning,    // its workers run
  kSucceeded,  // its workers have all exited with 0
  kStopping,   // told to stop the workers of a round that is over
  kSpare,      // waits for a place
};

struct NodeSnapshot {
  NodeInfo node;
  NodeState state = NodeState::kJoined;
  int group_rank = -1;  // in the current round; -1: none
  std::string rank_reason;
};

// A round, this one or a former one.
struct RoundSnapshot {
  RoundNumber number = 0;
  // When it opened: for the first, when the job was made or the daemon was started again.
  Duration opened_ago{};
  // How long it gathered; nullopt: it has not started.
  std::optional<Duration> gathered;
  // How long it has run, or ran.
  Duration ran{};
  // Of its members, once it has started.
  int nodes = 0;
  int workers = 0;
  // Why it is over, also in words; nullopt: it is the current one.
  std::optional<RoundEnd> end;
  std::string reason;
};

struct JobSnapshot {
  std::string run_id;
  JobState state = JobState::kGathering;
  RoundNumber round = 0;
  std::string sentence;
  JobSettings settings;
  int restart_count = 0;
  // Since it was made, or this daemon was started again.
  Duration age{};
  // The last ones, the current one last.
  std::vector<RoundSnapshot> rounds;
  // Members by group rank, then the others in order of their attendance.
  std::vector<NodeSnapshot> nodes;
};

}  // namespace muster::rendezvous
