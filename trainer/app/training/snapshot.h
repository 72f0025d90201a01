// The state of a training as one value, which a checkpoint holds.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/train_state.h"
#include "trainer/data/data_facts.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// The snapshot as a dict that Python's torch.load can read:
//   model      the state dict; and what else Strategy::Save() says
//   scheduler  {"last_epoch": steps, "_last_lr": [learning rate]}
//   sampler    TrainState
//   model_name "cnn", "gpt": the name of its recipe
//   model_flags {"--width": "128", ...}: ModelFlags(), which determine the parameters
//   options    {"--lr": "0.02", ...}: OptionsValue(), all flags
// and what SetFacts() says of the data. Of random numbers nothing is stored: see RandomPlace.
// `model` is what Strategy::Save() returned, `lr` the learning rate of the next step.
Value TakeSnapshot(Dict model, const TrainState& state, const Options& options,
                   const DataFacts& facts, double lr);

// Restores `snapshot`. The seed and the size of the data set in `state` must be those of this run.
// Returns the sentences of CompareOptions. kInvalidArgument and one sentence when `snapshot` is not
// one, CompareOptions refuses it, or it has another seed or number of samples; strategy and state
// may then be partly restored.
absl::StatusOr<std::vector<std::string>> PutBack(const Value& snapshot, const Options& options,
                                                 Strategy& strategy, TrainState& state);

}  // namespace muster::trainer
