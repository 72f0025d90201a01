// Runs muster-train as one rank, from the options to the summary.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/reports/progress.h"
#include "trainer/data/dataset.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// Checks that this rank can take part: that its options suit its world, its output files can be
// written, and its data can be opened, which it returns. Rank 0 prints what is trained to
// `progress`. kInvalidArgument and one sentence when the user has to change something; the other
// ranks do not know of it then.
absl::StatusOr<Splits> PrepareRank(const Options& options, const Environment& env,
                                   Progress& progress);

// Trains on the data that PrepareRank returned; rank 0 prints to `progress` and stdout. Returns the
// exit code: 0, or the StopExitCode() of the signal that stopped the run. After an error, exit
// without destroying LibTorch objects: c10d's destructors wait for peers that may be gone.
absl::StatusOr<int> RunRank(const Options& options, const Environment& env, Splits data,
                            Progress& progress);

}  // namespace muster::trainer
