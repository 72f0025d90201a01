// Whether the actions of a schedule are complete, and each rank's in an order that it can follow.
#pragma once

#include "absl/status/status.h"

#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

// Looks at each rank for itself: every micro-batch goes through every chunk once, forward and then
// backward, in one or as inputs and then weights. kInvalidArgument and one sentence that names the
// rank and the first action of which that is not true. Whether ranks wait for each other forever is
// found by playing the schedule (simulation.h).
absl::Status CheckRankOrders(const PipelineSchedule& schedule);

}  // namespace muster::trainer
