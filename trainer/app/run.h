// muster-train as one rank: from the options to the summary.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// Trains, and says on standard output what rank 0 says. Returns the exit code: 0, or 143 when the
// run was told to stop by SIGTERM, which is what shells call a process that SIGTERM ended. After an
// error nothing of LibTorch may be destroyed: c10d's destructors wait for peers that may be gone.
absl::StatusOr<int> RunRank(const Options& options, const Environment& env);

}  // namespace muster::trainer
