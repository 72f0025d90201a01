// What a schedule costs: when each of its actions begins and ends if nothing but the pipeline
// itself makes a rank wait.
#pragma once

#include <chrono>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

using Milliseconds = std::chrono::duration<double, std::milli>;

// How long things take, for the whole of what a rank has of the model: a pass through one of its
// chunks takes a share of that. The same on all ranks. A kBackward takes input and weight together.
struct PassTimes {
  Milliseconds forward{1};
  Milliseconds backward_input{1};
  Milliseconds backward_weight{1};
  Milliseconds message{0};  // from one rank to another; neither is busy with it

  // That of the three passes of a micro-batch through a rank.
  Milliseconds passes() const { return forward + backward_input + backward_weight; }
};

// An action and when it is done, counted from the beginning of the step.
struct TimedAction {
  PipelineAction action;
  Milliseconds start{0};
  Milliseconds end{0};
};

// A rank's step.
struct RankTimeline {
  std::vector<TimedAction> actions;  // in the order of the schedule
  Milliseconds busy{0};
  // The most forwards whose backward is still to be done (with a split backward, that of weights):
  // what memory for activations is needed for, in micro-batches of one chunk.
  int most_live = 0;
};

// A step of all ranks.
struct PipelineTimeline {
  PipelineShape shape;
  std::vector<RankTimeline> ranks;
  Milliseconds step{0};  // until the last rank has done its last action
  double bubble = 0;     // the share of the step that ranks idle, the mean of all ranks
};

// Plays `schedule`: each rank begins its next action as soon as it has done the one before and has
// received what the action needs. Sending never waits. Times must not be negative, and the passes
// not all be zero.
//
// kInvalidArgument and one sentence for a schedule that nobody could follow: an action that is
// missing, there twice or outside the shape; a rank that goes backward with what it has not gone
// forward with, or computes weights' gradients before those of inputs; ranks that wait for each
// other forever.
absl::StatusOr<PipelineTimeline> Simulate(const PipelineSchedule& schedule, const PassTimes& times);

}  // namespace muster::trainer
