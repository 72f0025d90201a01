// What is said about nodes and their failures, in the same words on status page, log and terminal.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// When nodes said which rank they want: " (missing: node ranks 1, 3)" for those of 0..max_nodes-1
// that none asked for. Empty when no node asked for a rank, or when none is missing.
std::string MissingHints(const std::vector<Candidate>& joined, int max_nodes);

// "rank 3 on host b exited with code 3".
std::string DescribeFailure(const WorkerFailure& failure);

// Why a node may not leave a job that has `nodes` with it: "the job needs 2 nodes, and has 2".
std::string WhyNodeIsNeeded(int min_nodes, int max_nodes, int nodes);

// "gathering", "running", ...: the enumerator in one word, without its k.
const char* StateName(JobState state);
const char* StateName(NodeState state);

}  // namespace muster::rendezvous
