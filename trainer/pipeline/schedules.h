// The order of a rank's actions in each schedule. Pure functions, without a notion of time.
// MakeSchedule checks their requirements on a shape.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// A schedule of pipeline parallelism, as data: each rank's actions, in order.

// The sizes of a pipeline. A model is cut into `stages * chunks` parts of equal cost. Part number i
// belongs to rank i % stages, as that rank's chunk i / stages. A step's batch is cut into
// `micro_batches`, and each of them goes forward through all parts, then backward.
struct PipelineShape {
  int stages = 1;         // ranks
  int chunks = 1;         // parts on each rank
  int micro_batches = 1;  // in one step

  int parts() const { return stages * chunks; }
  int PartOf(int rank, int chunk) const { return chunk * stages + rank; }
  int RankOf(int part) const { return part % stages; }

  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

enum class PipelineKind { kGPipe, kOneForwardOneBackward, kInterleaved, kZeroBubble };

enum class ActionKind {
  kForward,
  kBackward,        // the gradients of the inputs and of the weights, in one
  kBackwardInput,   // the gradient that the previous part waits for
  kBackwardWeight,  // any time after kBackwardInput: no rank waits for it
};

// One action of a rank: the pass of a micro-batch through one of its chunks. Forward needs the
// forward of the previous part, backward that of the next part, and each result is sent at the end
// of the action.
struct PipelineAction {
  ActionKind kind = ActionKind::kForward;
  int chunk = 0;        // of this rank, from 0
  int micro_batch = 0;  // from 0

  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

// One rank's actions in one step, in order.
using RankActions = std::vector<PipelineAction>;

// All ranks' actions in one step.
struct PipelineSchedule {
  PipelineKind kind = PipelineKind::kGPipe;
  PipelineShape shape;
  std::vector<RankActions> ranks;  // one for each stage

  // The number of actions of all ranks.
  std::size_t size() const;
};

// 'F'; 'B' for a combined backward or one of inputs; 'W'.
char LetterOf(ActionKind kind);

// "the forward of micro-batch 3", with "... in chunk 1" if a rank has several chunks.
std::string PhraseOf(const PipelineAction& action, const PipelineShape& shape);

// Schedules of pipeline parallelism by name.

// "1f1b", "gpipe", "interleaved" and "zero-bubble".
std::vector<std::string> ScheduleNames();

// The schedule with that name, in command-line form, for all ranks of `shape`. kInvalidArgument and
// one sentence if the name is unknown, or that schedule does not support the shape.
absl::StatusOr<PipelineSchedule> MakeSchedule(const std::string& name, const PipelineShape& shape);

// All forwards, then all backwards, so that every micro-batch is live at once: Huang et al.,
// "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", 2019. One chunk.
// (In the paper the last micro-batch goes backward first; here the first, which takes the same time
// and memory, and sums gradients in the same order as the other schedules.)
RankActions GPipeActions(const PipelineShape& shape);

// Forwards until the first backward arrives, then one backward after each forward: PipeDream-Flush
// of Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021. Rank r never has
// more than stages - r micro-batches live. One chunk.
RankActions OneForwardOneBackwardActions(const PipelineShape& shape, int rank);

// 1F1B over several chunks, so that filling and draining the pipeline takes less time: Narayanan et
// al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021,
// section 2.2. Two chunks or more; micro-batches go through a chunk in groups of `stages`, so their
// number must be a multiple of that.
RankActions InterleavedActions(const PipelineShape& shape, int rank);

// ZB-H1 of Qi et al., "Zero Bubble Pipeline Parallelism", 2023, section 2.1: 1F1B whose backward is
// split. Rank r does r more backwards of inputs before the first of weights, as it starts with r
// fewer forwards than rank 0. So each rank has at most `stages` micro-batches live, gradients
// travel back sooner, and weights fill the end of the step, where 1F1B waits. One chunk.
RankActions ZeroBubbleActions(const PipelineShape& shape, int rank);

// Forwards only, for evaluating a model: the same on every rank. Micro-batches go through a chunk
// in groups of `stages`, then through the next, so that no rank waits for all of them to finish.
RankActions ForwardActions(const PipelineShape& shape);

// Cuts a model into the parts of a pipeline.

// Cuts consecutive stages with these `costs` into `parts` of about equal cost, each of at least one
// stage. Returns the first stage of each part; the first is 0.
//
// The rule: minimize the cost of the most expensive part, since all ranks wait for that one; then
// the sum of squares of the parts' costs, so that the others are as equal as possible; and break
// ties in favor of parts that begin earliest, comparing the last part first.
//
// kInvalidArgument and one sentence if there are more parts than stages, no parts, or a cost is
// negative or not finite.
absl::StatusOr<std::vector<std::size_t>> CutEvenly(const std::vector<double>& costs, int parts);

// The same, given the names of the stages at which parts begin, except the first:
// {"transformer.h.2", "transformer.h.4"} for three parts of a GPT. kInvalidArgument and one
// sentence if a stage does not exist, or they are out of order.
absl::StatusOr<std::vector<std::size_t>> CutAt(const std::vector<std::string>& stages,
                                               const std::vector<std::string>& begins);

}  // namespace muster::trainer
