// The cost of a schedule: when each action begins and ends if ranks only wait for the pipeline
// itself.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {

using Milliseconds = std::chrono::duration<double, std::milli>;

// Durations for the whole of a rank's part of the model: a pass through one of its chunks takes its
// fraction of that. The same on all ranks. A kBackward takes input and weight together.
struct PassTimes {
  Milliseconds forward{1};
  Milliseconds backward_input{1};
  Milliseconds backward_weight{1};
  Milliseconds message{0};  // from one rank to another; neither is busy during it

  // Of a micro-batch's three passes through a rank.
  Milliseconds passes() const { return forward + backward_input + backward_weight; }
};

// An action with its times, counted from the start of the step.
struct TimedAction {
  PipelineAction action;
  Milliseconds start{0};
  Milliseconds end{0};
};

// A rank's step.
struct RankTimeline {
  std::vector<TimedAction> actions;  // in the order of the schedule
  Milliseconds busy{0};
  // The most forwards whose backward (if split, that of weights) is still pending: the memory for
  // activations, in micro-batches of one chunk.
  int most_live = 0;
};

// A step of all ranks.
struct PipelineTimeline {
  PipelineShape shape;
  std::vector<RankTimeline> ranks;
  Milliseconds step{0};  // until the last rank has finished its last action
  double bubble = 0;     // the share of the step in which ranks idle, as the mean of all ranks
};

// Simulates `schedule`: each rank begins its next action as soon as it has finished the previous
// one and has received its input. Sending never waits. Times must not be negative, nor all passes
// zero.
//
// kInvalidArgument and one sentence for an impossible schedule: an action that is missing,
// duplicated or outside the shape; a backward before its forward, or gradients of weights before
// those of inputs; a deadlock of ranks.
absl::StatusOr<PipelineTimeline> Simulate(const PipelineSchedule& schedule, const PassTimes& times);

// Checks that a schedule is complete, and each rank's actions in a possible order.

// Checks each rank separately: every micro-batch goes through every chunk once, forward and then
// backward, combined or as inputs and then weights. kInvalidArgument and one sentence with the rank
// and the first action that violates this. Simulate() finds deadlocks.
absl::Status CheckRankOrders(const PipelineSchedule& schedule);

// The costs of schedules according to their papers.

// The share of a step that ranks idle, when messages take no time: T / (m (F + B + W) + T), where T
// is the time that the pipeline takes to fill and to drain. p, v and m are stages, chunks and
// micro-batches; F, B and W the times of the passes.
struct BubbleTheory {
  std::optional<double>
      share;            // none for a zero-bubble schedule with fewer micro-batches than stages
  std::string formula;  // for the share, or for T if only that is short; or why there is none
};

// By the formula of the schedule's paper. For H1 that is T = (p - 1)(F + B - W), which holds as
// long as W takes no longer than F or B. It is extended to any times by the longest wait along the
// ranks: T = (p - 1) max(F, B, F + B - W).
BubbleTheory TheoryOfBubble(PipelineKind kind, const PipelineShape& shape, const PassTimes& times);

// The most micro-batches of one chunk that are live on `rank`, counted as in RankTimeline.
int TheoryOfLive(PipelineKind kind, const PipelineShape& shape, int rank);
// The same as a formula: "min(m, p - rank)".
std::string FormulaOfLive(PipelineKind kind);

}  // namespace muster::trainer
