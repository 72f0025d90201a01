// The order in which a rank of a pipeline works, by each schedule. Pure functions: they count, and
// know nothing of time. MakeSchedule (make_schedule.h) checks what they expect of a shape.
#pragma once

#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

// All forwards, then all backwards, so that every micro-batch is live at once: Huang et al.,
// "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", 2019. One chunk.
// (There the backwards come last micro-batch first; here first first, which takes the same time and
// memory, and adds gradients up in the order of the other schedules.)
RankActions GPipeActions(const PipelineShape& shape);

// Forwards until the first backward arrives, then one backward after each forward: PipeDream-Flush
// of Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021. Rank r never has
// more than stages - r micro-batches live. One chunk.
RankActions OneForwardOneBackwardActions(const PipelineShape& shape, int rank);

// 1F1B over several chunks, so that filling and draining the pipeline takes a part of the time:
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", 2021, section 2.2. Two chunks or more; micro-batches go through a chunk in groups
// of `stages`, so their number must be a multiple of that.
RankActions InterleavedActions(const PipelineShape& shape, int rank);

// ZB-H1 of Qi et al., "Zero Bubble Pipeline Parallelism", 2023, section 2.1: 1F1B whose backward is
// split. Rank r is r backwards of inputs ahead of those of weights: as many as it has fewer
// forwards ahead than rank 0. So each rank has `stages` micro-batches live at most, gradients
// travel back sooner, and weights fill the end of the step, where 1F1B waits. One chunk.
RankActions ZeroBubbleActions(const PipelineShape& shape, int rank);

// Forwards alone, to measure a model: the same on every rank. Micro-batches go through a chunk in
// groups of `stages`, then through the next, so that no rank waits for the end of all of them.
RankActions ForwardActions(const PipelineShape& shape);

}  // namespace muster::trainer
