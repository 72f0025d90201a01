// How the ranks are given rank 0's tensors.
#pragma once

#include <cstddef>

namespace muster::trainer {

// Bytes that one message of c10d::broadcast_coalesced holds: as Python's DistributedDataParallel
// (torch/nn/parallel/distributed.py, broadcast_bucket_size).
inline constexpr std::size_t kBroadcastBucketBytes = std::size_t{250} << 20;

}  // namespace muster::trainer
