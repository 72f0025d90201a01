#include "trainer/comm/traffic.h"

namespace muster::trainer {

Traffic Traffic::Since(const Traffic& earlier) const {
  Traffic since = *this;
  since.formula_bytes -= earlier.formula_bytes;
  if (counted_bytes) since.counted_bytes = *counted_bytes - earlier.counted_bytes.value_or(0);
  return since;
}

std::int64_t CentralBytes(int replicas, std::int64_t bytes) {
  return 2 * (replicas - 1) * bytes;
}

std::int64_t RingBytes(int ranks, std::int64_t bytes) {
  return 2 * (ranks - 1) * bytes / ranks;
}

std::int64_t GatherBytes(int ranks, std::int64_t bytes) {
  return (ranks - 1) * bytes;
}

std::int64_t FormulaParts(Operation operation, int ranks, std::int64_t bytes) {
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * (ranks - 1) * bytes;
    case Operation::kReduceScatter:
    case Operation::kBroadcast:
      return (ranks - 1) * bytes;
    case Operation::kAllGather:
      return GatherBytes(ranks, bytes) * ranks;
    case Operation::kSend:
      return bytes * ranks;
    case Operation::kReceive:
      return 0;
  }
  return 0;
}

void TrafficCount::Add(Use use, Operation operation, std::int64_t bytes,
                       std::optional<std::int64_t> counted) {
  Sums& sums = sums_[static_cast<std::size_t>(use)];
  sums.parts += FormulaParts(operation, ranks_, bytes);
  ++sums.operations;
  if (counted) {
    sums.counted += *counted;
  } else {
    ++sums.uncounted;
  }
}

Traffic TrafficCount::Total(Use use, bool counts) const {
  const Sums& sums = sums_[static_cast<std::size_t>(use)];
  Traffic total = {.formula_bytes = sums.parts / ranks_};
  if (sums.uncounted == 0 && (counts || sums.operations > 0)) total.counted_bytes = sums.counted;
  return total;
}

}  // namespace muster::trainer
