// Options for shared memory between ranks.
#pragma once

#include <chrono>
#include <cstddef>

namespace muster::trainer {

struct ShmOptions {
  // How much of a rank's tensor is in the segment at a time. Smaller tensors use a smaller segment;
  // larger ones pass through it piece by piece. Pieces are faster if they fit in the CPU caches.
  std::size_t piece_bytes = std::size_t{1} << 20;
  // How long a peer may be stopped (SIGSTOP, a debugger) before that is an error. With the default,
  // it is noticed within 250 ms. Time during which this process itself was stopped does not count,
  // so a job that is stopped and continued as a whole carries on.
  std::chrono::milliseconds stopped_grace{100};
};

}  // namespace muster::trainer
