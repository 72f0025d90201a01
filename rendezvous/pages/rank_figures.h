// Figures of ranks, as their workers tell them in beats.
#pragma once

#include <cstddef>
#include <vector>

#include "rendezvous/core/snapshot.h"
#include "rendezvous/pages/exposition.h"

namespace muster::rendezvous {

// Of as many ranks, over all jobs in order, there is a line of their own in each metric; and of as
// many more that are stragglers it is said that they are.
inline constexpr std::size_t kMostRankLines = 1000;

// As metrics: of each job that tells what its ranks have in common, and of each rank.
void WriteRankFigures(const std::vector<JobSnapshot>& jobs, Exposition& out);

}  // namespace muster::rendezvous
