// What the papers say that their schedules cost.
#pragma once

#include <optional>
#include <string>

#include "trainer/pipeline/pipeline_schedule.h"
#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// The share of a step that ranks idle, when messages take no time: T / (m (F + B + W) + T), where T
// is the time that the pipeline takes to fill and to drain. p, v and m are stages, chunks and
// micro-batches; F, B and W the times of the passes.
struct BubbleTheory {
  std::optional<double>
      share;            // none for a zero-bubble schedule with fewer micro-batches than stages
  std::string formula;  // of the share, or of T where only that is short; or why there is none
};

// By the formula of the schedule's paper. For H1 that is T = (p - 1)(F + B - W), which holds as
// long as W takes no longer than F or B. It is extended here to any times by what is then the
// longest wait in a row of ranks: T = (p - 1) max(F, B, F + B - W).
BubbleTheory TheoryOfBubble(PipelineKind kind, const PipelineShape& shape, const PassTimes& times);

// The most micro-batches of one chunk that are live on `rank`, as RankTimeline counts them.
int TheoryOfLive(PipelineKind kind, const PipelineShape& shape, int rank);
// The same as a formula: "min(m, p - rank)".
std::string FormulaOfLive(PipelineKind kind);

// The messages that `rank` sends in a step, each the activation of a micro-batch between two parts
// or its gradient: over all ranks 2 (parts - 1) micro_batches. A rank that is alone sends none.
int TheoryOfMessages(const PipelineShape& shape, int rank);

}  // namespace muster::trainer
