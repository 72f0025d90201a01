// Options for shared memory between ranks.
#pragma once

#include <cstddef>

namespace muster::trainer {

struct ShmOptions {
  // How much of a rank's tensor is in the segment at a time. Smaller tensors use a smaller segment;
  // larger ones pass through it piece by piece. Pieces are faster if they fit in the CPU caches.
  std::size_t piece_bytes = std::size_t{1} << 20;
};

}  // namespace muster::trainer
