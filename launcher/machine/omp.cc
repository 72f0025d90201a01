#include "launcher/machine/omp.h"

namespace muster::launcher {

std::optional<OmpDefault> DefaultOmpThreads(int nproc, const Environment& environment) {
  if (nproc <= 1 || environment.count("OMP_NUM_THREADS") > 0) return std::nullopt;
  return OmpDefault{.threads = "1",
                    .note = "OMP_NUM_THREADS=1 for each worker; set it to choose otherwise"};
}

}  // namespace muster::launcher
