// How many bytes data-parallel training moves: as counted, and as the formulas say.
#pragma once

#include <cstdint>

namespace muster::trainer {

// What was moved so far. One rank's part for DDP and parameter averaging; the whole process's for
// DataParallel.
struct Traffic {
  std::int64_t steps = 0;          // steps that moved something
  std::int64_t payload_bytes = 0;  // size of what was added up or averaged, over all steps
  std::int64_t moved_bytes = 0;    // bytes sent (or taken from another's memory) for it

  double moved_bytes_per_step() const {
    return steps == 0 ? 0 : static_cast<double>(moved_bytes) / static_cast<double>(steps);
  }
};

// 2(N-1)t: bytes over the one place that holds the model, when N replicas each get its `t` bytes of
// parameters and give back as many of gradients, and one replica lives at that place. This is what
// DataParallel does, and a parameter server, whose server it limits: Li et al., "Scaling
// Distributed Machine Learning with the Parameter Server", OSDI 2014.
std::int64_t CentralBytes(int replicas, std::int64_t bytes);

// 2(N-1)K/N: bytes that each of N ranks sends to add up K bytes by a reduce-scatter and an
// all-gather, in a ring or otherwise. No all-reduce sends less: Patarasuk and Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69(2),
// 2009.
double RingBytesPerRank(int ranks, std::int64_t bytes);

}  // namespace muster::trainer
