// The model in a checkpoint, made anew from what the checkpoint says of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/commands/command_line.h"
#include "trainer/app/options/options.h"
#include "trainer/data/data_facts.h"
#include "trainer/io/value.h"
#include "trainer/models/model.h"

namespace muster::trainer {

struct CheckpointModel {
  std::string path;  // of what was read
  // The flags that make such a model: {"--model=gpt", "--width=128", ...}.
  std::vector<std::string> flags;
  // The other flags of the training that say what its data was: {"--data=my.txt", ...}. Empty if
  // the file does not say.
  std::vector<std::string> data_flags;
  DataFacts facts;                   // of the data of the training
  std::optional<std::int64_t> step;  // after which it was written; a state dict does not say
  Value state;                       // the state dict
  // A sentence for each newer checkpoint that was passed over because it is not whole.
  std::vector<std::string> warnings;
};

// Reads the model of `source`: a checkpoint, as a file or in shards, a state dict, or safetensors;
// or, if it is a directory of checkpoints, the newest that is whole. What the model is made of is
// what its recipe in `registry` recognizes in the tensors' names and shapes, which every kind of
// file has; the rest, such as a GPT's heads, is taken from the checkpoint or, if it does not say,
// from the source. kInvalidArgument, one sentence, when there is no such file, it is damaged, or it
// holds no model of the registry's or not the wanted one; kUnavailable when reading fails.
absl::StatusOr<CheckpointModel> ModelFromCheckpoint(const ModelSource& source,
                                                    const Registry& registry);

// The options that the flags of `checkpoint` and those `given` on the command line make together.
// Where both say something of the data, the command line is right. kInvalidArgument for a mistake
// in `given`, and when it names another model. The data is to be read as that of the training was.
absl::StatusOr<Options> OptionsOf(const CheckpointModel& checkpoint,
                                  const std::vector<std::string>& given, const Registry& registry);

// A model as the options say, on `device`, set for evaluation; with first parameters of its own.
// kInvalidArgument as MakeModel.
absl::StatusOr<std::unique_ptr<Model>> MakeEvaluationModel(const Options& options,
                                                           const at::Device& device);

// Gives `model` the parameters and buffers of `checkpoint`. kInvalidArgument when they do not fit.
absl::Status LoadParameters(const CheckpointModel& checkpoint, const Model& model);

// The first GPU, if there is one; else the processors.
at::Device PickDevice();

}  // namespace muster::trainer
