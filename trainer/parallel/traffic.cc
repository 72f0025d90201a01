#include "trainer/parallel/traffic.h"

namespace muster::trainer {

std::int64_t CentralBytes(int replicas, std::int64_t bytes) {
  return 2 * (replicas - 1) * bytes;
}

std::int64_t RingBytes(int ranks, std::int64_t bytes) {
  return 2 * (ranks - 1) * bytes / ranks;
}

std::int64_t GatherBytes(int ranks, std::int64_t bytes) {
  return (ranks - 1) * bytes;
}

}  // namespace muster::trainer
