// A schedule of pipeline parallelism, as data: what each rank does, in which order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster::trainer {

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
  int ChunkOf(int part) const { return part / stages; }

  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

enum class PipelineKind { kGPipe, kOneForwardOneBackward, kInterleaved, kZeroBubble };

enum class ActionKind {
  kForward,
  kBackward,        // the gradients of the inputs and of the weights, in one
  kBackwardInput,   // the gradient that the part before waits for
  kBackwardWeight,  // after kBackwardInput, whenever it suits: nobody waits for it
};

// One thing that a rank does: the pass of a micro-batch through one of its chunks. Forward needs
// the forward of the part before, backward that of the part behind, and each result is sent on when
// the action ends.
struct PipelineAction {
  ActionKind kind = ActionKind::kForward;
  int chunk = 0;        // of this rank, from 0
  int micro_batch = 0;  // from 0

  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

// What one rank does in one step, in this order.
using RankActions = std::vector<PipelineAction>;

// What all ranks do in one step.
struct PipelineSchedule {
  PipelineKind kind = PipelineKind::kGPipe;
  PipelineShape shape;
  std::vector<RankActions> ranks;  // one for each stage

  // All actions of all ranks together.
  std::size_t size() const;
};

// 'F', 'B' for a backward in one or of inputs, 'W'.
char LetterOf(ActionKind kind);

// "the forward of micro-batch 3", and where a rank has several chunks "... in chunk 1".
std::string PhraseOf(const PipelineAction& action, const PipelineShape& shape);

}  // namespace muster::trainer
