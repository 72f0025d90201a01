// One rank's part of the training, from the first step to the last file.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/app/reports/summary.h"
#include "trainer/app/training/session.h"

namespace muster::trainer {

// Trains with the other ranks of session.group, measures, and writes what is asked for; returns
// when every rank is done, or when one was told to stop: then with Summary::stopped, and a
// checkpoint if there is a directory for it. The same options, seed included, give the same losses
// whatever the number of ranks, but for rounding: every step takes the same samples, and its
// gradient is their mean. To be called once.
//
// kUnavailable, with the step, when a peer is lost or a file cannot be written; kInvalidArgument
// when the user has to change something. The group is of no more use then. Throws nothing.
absl::StatusOr<Summary> Train(Session& session);

}  // namespace muster::trainer
