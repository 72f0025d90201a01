// OMP_NUM_THREADS for workers whose user did not choose it.
#pragma once

#include <optional>
#include <string>

#include "launcher/environment.h"

namespace muster::launcher {

struct OmpDefault {
  // For the workers' OMP_NUM_THREADS.
  std::string threads;
  // One line for the user, who may be surprised.
  std::string note;

  bool operator==(const OmpDefault&) const = default;
};

// torchrun's rule: several workers on one node would each start a thread for every CPU and slow
// each other down, so each gets one thread. Nothing with a single worker, or when the variable is
// set, be it to nothing.
std::optional<OmpDefault> DefaultOmpThreads(int nproc, const Environment& environment);

}  // namespace muster::launcher
