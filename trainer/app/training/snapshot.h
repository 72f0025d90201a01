// The state of a training as one value, the contents of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/train_state.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/io/state_dict.h"

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

// A checkpoint's facts about the data that its model was trained with.

// Adds `facts` to `checkpoint`:
//   normalization {"mean": [...], "deviation": [...], "columns": [...]}, the last one for tables
//   classes       ["cat", "dog"], the names by class number
void SetFacts(const DataFacts& facts, Dict& checkpoint);

// The inverse. What an older checkpoint, or a state dict, does not have is empty. kInvalidArgument,
// with one clause, if it is not as SetFacts() writes it.
absl::StatusOr<DataFacts> ReadFacts(const Value& checkpoint);

// The facts as text for another process, and back; nothing is rounded. `text` must be from
// PackFacts().
std::string PackFacts(const DataFacts& facts);
DataFacts UnpackFacts(const std::string& text);

// Saves options in a checkpoint, and compares them with those of a run that resumes from it.

// Returns {"--lr": "0.02", ...}: every flag with its value, in command-line form, so that the run
// can be repeated. Paths that are not given are left out.
Value OptionsValue(const std::vector<Setting>& settings);

// Returns flags in the same form.
Value FlagsValue(const std::vector<ModelFlag>& flags);

// Compares the options in `snapshot`, a checkpoint, with those of a run that resumes from it.
// Returns sentences for the user about options that have changed, and about what a checkpoint of an
// older version lacks. kInvalidArgument, and one sentence that names the flag, if the model or the
// data differs.
absl::StatusOr<std::vector<std::string>> CompareOptions(const Value& snapshot,
                                                        const Options& options);

}  // namespace muster::trainer
