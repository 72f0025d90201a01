// What can be set about shared memory between ranks.
#pragma once

#include <chrono>
#include <cstddef>

namespace muster::trainer {

struct ShmOptions {
  // How much of a rank's tensor is in the segment at a time. Smaller tensors take a smaller
  // segment, larger ones go through it piece by piece. A piece that stays in the processors' caches
  // is faster than one that does not.
  std::size_t piece_bytes = std::size_t{1} << 20;
  // How long a peer may be stopped (SIGSTOP, a debugger) before that is an error. The default finds
  // it within 250 ms. Time during which this process was stopped itself does not count, so a job
  // that is stopped and continued as a whole goes on.
  std::chrono::milliseconds stopped_grace{100};
};

}  // namespace muster::trainer
