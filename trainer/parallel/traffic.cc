#include "trainer/parallel/traffic.h"

namespace muster::trainer {

std::int64_t CentralBytes(int replicas, std::int64_t bytes) {
  return 2 * (replicas - 1) * bytes;
}

double RingBytesPerRank(int ranks, std::int64_t bytes) {
  return 2.0 * (ranks - 1) * static_cast<double>(bytes) / ranks;
}

}  // namespace muster::trainer
