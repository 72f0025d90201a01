// A training as one value: what a checkpoint holds.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/training/train_state.h"
#include "trainer/io/value.h"
#include "trainer/models/model.h"
#include "trainer/models/model_options.h"
#include "trainer/optim/optimizer.h"

namespace muster::trainer {

// The parts of a training that a snapshot is taken from, and put back into.
struct Trained {
  Model& model;
  Optimizer& optimizer;
  TrainState& state;
};

// A dict that Python's torch.load gives:
//   model      the state dict
//   optimizer  optimizer.state_dict()
//   scheduler  {"last_epoch": steps, "_last_lr": [learning rate]}
//   sampler    TrainState
//   rng        the state of each rank's random numbers, as torch.get_rng_state() gives it
//   model_name what --model was given
//   model_flags {"--width": "128", ...}: the other flags that decide what the parameters are
// `rng` has an entry for each rank: CpuRngState() as bytes. `lr` is that of the next step. The
// tensors are shared, so the value is to be written before the next step.
Value TakeSnapshot(const Trained& trained, const ModelOptions& model, double lr,
                   const std::vector<std::string>& rng);

// Puts a snapshot back; of rank `rank` of `world_size`. Random numbers go on where this rank's did
// if the world has the size it had; in another world each rank begins new ones, drawn from the
// seed, its rank and the step. kInvalidArgument and one sentence when the snapshot is of another
// model, of other data or another seed, or no snapshot; the parts may then be half restored.
// Expects state.seed and state.dataset_size to be those of this run.
absl::Status PutBack(const Value& snapshot, const ModelOptions& model, int rank, int world_size,
                     const Trained& trained);

}  // namespace muster::trainer
