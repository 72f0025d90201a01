// The default of OMP_NUM_THREADS for workers.
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
// each other down, so each gets one thread. nullopt with a single worker, or when the variable is
// set, even to an empty value.
std::optional<OmpDefault> DefaultOmpThreads(int nproc, const Environment& environment);

}  // namespace muster::launcher
