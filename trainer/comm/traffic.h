// How many bytes ranks exchange: as counted, and as the formulas predict.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "trainer/comm/operation.h"

namespace muster::trainer {

// Totals: of one rank for a group's operations, of the whole process for DataParallel.
struct Traffic {
  std::int64_t steps = 0;          // training steps; 0 where there are none
  std::int64_t formula_bytes = 0;  // what the method sends, predicted by its formula
  // Bytes sent, or read from another rank's memory; nullopt where c10d sends, as it does not count.
  std::optional<std::int64_t> counted_bytes;

  // One of the two totals, per step.
  double PerStep(std::int64_t bytes) const {
    return steps == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(steps);
  }
  // What has come since `earlier`, a total of the same operations; `steps` as here.
  Traffic Since(const Traffic& earlier) const;
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

// N times the bytes that each of N ranks sends in an operation, which need not be a whole number.
// `bytes` is what a rank passes to the operation: K in the formulas above for an all-reduce and an
// all-gather. A reduce-scatter sends (N-1)K/N; a broadcast as much, as the mean of all ranks; a
// message K.
std::int64_t FormulaParts(Operation operation, int ranks, std::int64_t bytes);

// What an operation is for.
enum class Use : std::uint8_t {
  kGradients,
  kParameters,   // that change in training: averaged or gathered
  kActivations,  // and what else a forward or a backward pass exchanges
  kOther,        // all that is not part of a step: losses, files, first values
};
inline constexpr std::size_t kUses = 4;

// Counts what one rank sends in a group's operations. Thread-safe.
class TrafficCount {
 public:
  explicit TrafficCount(int ranks) : ranks_(ranks) {}

  // An operation for which this rank has passed `bytes`. `counted` is what it has sent, nullopt
  // where that is not known.
  void Add(Use use, Operation operation, std::int64_t bytes, std::optional<std::int64_t> counted);

  // The total for `use`. Its counted_bytes are nullopt when one operation's were; when there was
  // no operation yet, it is 0 or, unless `counts`, nullopt.
  Traffic Total(Use use, bool counts) const;

 private:
  struct Sums {
    std::atomic<std::int64_t> parts = 0;  // as of FormulaParts
    std::atomic<std::int64_t> counted = 0;
    std::atomic<std::int64_t> operations = 0;
    std::atomic<std::int64_t> uncounted = 0;  // operations
  };

  const int ranks_;
  std::array<Sums, kUses> sums_;
};

}  // namespace muster::trainer
