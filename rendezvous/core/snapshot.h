// The state of a job as tools and pages see it: a copy, taken at one moment.
#pragma once

#include <string>
#include <vector>

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

struct JobSnapshot {
  std::string run_id;
  JobState state = JobState::kGathering;
  RoundNumber round = 0;
  std::string sentence;
  JobSettings settings;
  int restart_count = 0;
  // Members by group rank, then the others in order of their attendance.
  std::vector<NodeSnapshot> nodes;
};

}  // namespace muster::rendezvous
