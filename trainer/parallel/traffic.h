// How many bytes data-parallel training moves, and what the formulas predict.
#pragma once

#include <cstdint>
#include <optional>

namespace muster::trainer {

// Totals so far: of one rank for DDP and parameter averaging, of the whole process for
// DataParallel.
struct Traffic {
  std::int64_t steps = 0;          // training steps
  std::int64_t formula_bytes = 0;  // what the method sends, predicted by its formula
  // Bytes sent, or read from another rank's memory; nullopt where c10d sends, as it does not count.
  std::optional<std::int64_t> counted_bytes;

  // One of the two totals, per step.
  double PerStep(std::int64_t bytes) const {
    return steps == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(steps);
  }
};

// 2(N-1)K: the bytes in and out of the place that holds the model, when one of N replicas lives
// there, and each of the others receives K bytes of parameters and returns as many bytes of
// gradients. DataParallel works like this, and so does a parameter server, where this is the
// server's bottleneck: Li et al., "Scaling Distributed Machine Learning with the Parameter Server",
// OSDI 2014.
std::int64_t CentralBytes(int replicas, std::int64_t bytes);

// 2(N-1)K/N: the bytes that each of N ranks sends to all-reduce K bytes with a reduce-scatter and
// an all-gather, in a ring or otherwise. No all-reduce sends less: Patarasuk and Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69(2),
// 2009.
std::int64_t RingBytes(int ranks, std::int64_t bytes);

// (N-1)K: the bytes that each of N ranks sends when every rank gets the K bytes of every other.
std::int64_t GatherBytes(int ranks, std::int64_t bytes);

}  // namespace muster::trainer
