// The message size for broadcasting rank 0's tensors.
#pragma once

#include <cstddef>

namespace muster::trainer {

// The size in bytes of one message of c10d::broadcast_coalesced. The same as in Python's
// DistributedDataParallel (torch/nn/parallel/distributed.py, broadcast_bucket_size).
inline constexpr std::size_t kBroadcastBucketBytes = std::size_t{250} << 20;

}  // namespace muster::trainer
