// Rebuilds the model in a checkpoint from what the checkpoint contains.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/command_flags.h"
#include "trainer/app/options/options.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/io/state_dict.h"
#include "trainer/models/model.h"

namespace muster::trainer {

struct CheckpointModel {
  std::string path;  // of the file or directory that was read
  // The flags for such a model: {"--model=gpt", "--width=128", ...}.
  std::vector<std::string> flags;
  // The training's other flags about its data: {"--data=my.txt", ...}. Empty if the file does not
  // have them.
  std::vector<std::string> data_flags;
  DataFacts facts;                   // of the training's data
  std::optional<std::int64_t> step;  // when it was written; not in a state dict
  Value state;                       // the state dict
  // One sentence for each newer checkpoint that was skipped because it is incomplete.
  std::vector<std::string> warnings;
};

// Reads the model of `source`: a checkpoint, as a file or in shards, a state dict, or safetensors;
// or, if it is a directory of checkpoints, the newest complete one. The recipe in `registry`
// derives the model's settings from the tensors' names and shapes, which every kind of file has;
// the rest, such as a GPT's heads, comes from the checkpoint or, if missing there, from the source.
// kInvalidArgument, one sentence, if the file is missing or damaged, or its model is not in the
// registry or not the wanted kind; kUnavailable if reading fails.
absl::StatusOr<CheckpointModel> ModelFromCheckpoint(const ModelSource& source,
                                                    const Registry& registry);

// Combines the flags of `checkpoint` with those `given` on the command line. For data, the command
// line takes precedence. kInvalidArgument for a mistake in `given`, and if it names another model.
// Read the data as the training did.
absl::StatusOr<Options> OptionsOf(const CheckpointModel& checkpoint,
                                  const std::vector<std::string>& given, const Registry& registry);

// A model according to the options, on `device`, set for evaluation; with newly initialized
// parameters. kInvalidArgument as MakeModel.
absl::StatusOr<std::unique_ptr<Model>> MakeEvaluationModel(const Options& options,
                                                           const at::Device& device);

// Copies the parameters and buffers of `checkpoint` into `model`. kInvalidArgument if they do not
// fit.
absl::Status LoadParameters(const CheckpointModel& checkpoint, const Model& model);

// The first GPU, if there is one; else the CPU.
at::Device PickDevice();

}  // namespace muster::trainer
