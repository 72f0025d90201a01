// The state of a training as one value, which a checkpoint holds.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/training/train_state.h"
#include "trainer/io/value.h"
#include "trainer/models/model.h"
#include "trainer/optim/ema.h"
#include "trainer/optim/optimizer.h"

namespace muster::trainer {

// The parts of a training that a snapshot saves and restores.
struct Trained {
  Model& model;
  Optimizer& optimizer;
  TrainState& state;
  Ema* ema = nullptr;  // null: none is kept
};

// The snapshot as a dict that Python's torch.load can read:
//   model      the state dict
//   ema        the averages of the parameters, with --ema
//   optimizer  optimizer.state_dict()
//   scheduler  {"last_epoch": steps, "_last_lr": [learning rate]}
//   sampler    TrainState
//   model_name "cnn", "gpt": the name of its recipe
//   model_flags {"--width": "128", ...}: ModelFlags(), which determine the parameters
//   options    {"--lr": "0.02", ...}: OptionsValue(), all flags
// Of random numbers nothing is stored: see RandomPlace. `lr` is the learning rate of the next step.
// The value shares the model's and the optimizer's tensors, so write it before the next step.
Value TakeSnapshot(const Trained& trained, const Options& options, double lr);

// Restores `snapshot`. state.seed and state.dataset_size must be those of this run. Returns the
// sentences of CompareOptions. kInvalidArgument and one sentence when `snapshot` is not one,
// CompareOptions refuses it, or it has another seed or number of samples; the parts may then be
// partly restored.
absl::StatusOr<std::vector<std::string>> PutBack(const Value& snapshot, const Options& options,
                                                 const Trained& trained);

}  // namespace muster::trainer
