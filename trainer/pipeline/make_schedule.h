// Schedules of pipeline parallelism by name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

// "1f1b", "gpipe", "interleaved" and "zero-bubble".
std::vector<std::string> ScheduleNames();

// The schedule with that name, as users give it, for all ranks of `shape`. kInvalidArgument and one
// sentence when there is no such name, or when that schedule cannot have such a shape.
absl::StatusOr<PipelineSchedule> MakeSchedule(const std::string& name, const PipelineShape& shape);

}  // namespace muster::trainer
