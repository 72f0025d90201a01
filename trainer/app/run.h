// Runs muster-train as one rank, from the options to the summary.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// Trains; rank 0 prints to stdout. Returns the exit code: 0, or 143 when SIGTERM stopped the run,
// as shells report it. After an error, exit without destroying LibTorch objects: c10d's destructors
// wait for peers that may be gone.
absl::StatusOr<int> RunRank(const Options& options, const Environment& env);

}  // namespace muster::trainer
