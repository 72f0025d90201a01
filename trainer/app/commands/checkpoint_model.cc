#include "trainer/app/commands/checkpoint_model.h"

#include <torch/cuda.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "trainer/app/commands/state_dict_model.h"
#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

// What a file holds.
struct Contents {
  std::string path;
  Value value;
  std::vector<std::string> warnings;
};

absl::StatusOr<Contents> ReadDirectory(const std::string& path) {
  const auto directory = CheckpointDirectory::Open(path, /*keep=*/1);
  if (!directory.ok()) return directory.status();
  auto found = directory->FindNewest();
  if (!found.ok()) return found.status();
  if (!found->has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "read a checkpoint from ", path, ": the directory has none (step-000000000100.pt, ...)"));
  }
  absl::StatusOr<Value> value = ReadTorchFile((*found)->path);
  if (!value.ok()) return value.status();
  return Contents{(*found)->path, *std::move(value), std::move((*found)->warnings)};
}

absl::StatusOr<Contents> ReadContents(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return ReadDirectory(path);
  if (absl::EndsWith(path, ".safetensors")) {
    const absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(path);
    if (!contents.ok()) return contents.status();
    return Contents{path, StateDictValue(contents->tensors), {}};
  }
  absl::StatusOr<Value> value = ReadTorchFile(path);
  if (!value.ok()) return value.status();
  return Contents{path, *std::move(value), {}};
}

TensorShapes ShapesOf(const Value& state) {
  TensorShapes shapes;
  for (const auto& [key, value] : *state.dict()) {
    shapes[std::string(absl::StripPrefix(std::get<std::string>(key), "module."))] =
        value.tensor()->sizes().vec();
  }
  return shapes;
}

bool HoldsDoubles(const Value& state) {
  for (const auto& [key, value] : *state.dict()) {
    if (value.tensor()->scalar_type() == at::kDouble) return true;
  }
  return false;
}

absl::Status CheckWanted(ModelKind kind, WantedModel wanted) {
  const bool text = kind == ModelKind::kGpt;
  if (text && wanted == WantedModel::kImages) {
    return absl::InvalidArgumentError("it is a text model (gpt); use `muster-train generate`");
  }
  if (!text && wanted == WantedModel::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is an image model (", ModelName(kind), "); use `muster-train predict`"));
  }
  return absl::OkStatus();
}

// The heads of a GPT: what the checkpoint says, or else what the user says.
absl::StatusOr<std::int64_t> HeadsOf(const Value& checkpoint, std::int64_t given) {
  const Value* flags = checkpoint.Find("model_flags");
  const auto text =
      flags != nullptr ? flags->GetString("--heads") : absl::StatusOr<std::string>("");
  std::int64_t stored = 0;
  const bool says = text.ok() && absl::SimpleAtoi(*text, &stored) && stored > 0;
  if (!says && given == 0) {
    return absl::InvalidArgumentError(
        "neither the file nor its parameters say how many attention heads the model has; give the "
        "--heads of the training");
  }
  if (says && given != 0 && given != stored) {
    return absl::InvalidArgumentError(
        absl::StrCat("it was made with --heads ", stored, ", and --heads ", given, " was given"));
  }
  return says ? stored : given;
}

std::vector<std::string> FlagsOf(const ModelOptions& model) {
  std::vector<std::string> flags;
  // Of an mlp the size is a part of the name, and so among the flags.
  if (model.kind != ModelKind::kMlp) {
    flags.push_back(absl::StrCat("--model=", ModelName(model.kind)));
  }
  for (const auto& [flag, value] : ModelFlags(model)) {
    flags.push_back(absl::StrCat(flag, "=", value));
  }
  return flags;
}

}  // namespace

absl::StatusOr<CheckpointModel> ModelFromCheckpoint(const ModelSource& source) {
  absl::StatusOr<Contents> contents = ReadContents(source.checkpoint);
  if (!contents.ok()) return contents.status();
  const auto refused = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("take the model from ", contents->path, ": ",
                                                    status.message()));
  };
  const Value& value = contents->value;
  const absl::StatusOr<const Value*> state = FindStateDict(value);
  if (!state.ok()) return refused(state.status());
  absl::StatusOr<ModelOptions> model = ModelOfStateDict(ShapesOf(**state));
  if (!model.ok()) return refused(model.status());
  const absl::Status usable = CheckWanted(model->kind, source.wanted);
  if (!usable.ok()) return refused(usable);
  if (model->kind == ModelKind::kGpt) {
    const absl::StatusOr<std::int64_t> found = HeadsOf(value, source.heads);
    if (!found.ok()) return refused(found.status());
    model->gpt.heads = *found;
  }
  CheckpointModel checkpoint{.path = contents->path,
                             .flags = FlagsOf(*model),
                             .step = {},
                             .state = **state,
                             .warnings = std::move(contents->warnings)};
  if (HoldsDoubles(checkpoint.state)) checkpoint.flags.push_back("--dtype=float64");
  if (const Value* sampler = value.Find("sampler"); sampler != nullptr) {
    const absl::StatusOr<std::int64_t> step = sampler->GetInt("step");
    if (step.ok()) checkpoint.step = *step;
  }
  return checkpoint;
}

absl::StatusOr<Options> OptionsOf(const std::vector<std::string>& flags,
                                  const std::vector<std::string>& given) {
  std::vector<const char*> arguments = {"muster-train"};
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  for (const std::string& flag : given) arguments.push_back(flag.c_str());
  absl::StatusOr<Options> options =
      ParseOptions(static_cast<int>(arguments.size()), arguments.data());
  if (!options.ok()) return options;
  const std::vector<std::string> together = FlagsOf(options->model);
  for (std::size_t i = 0; i < std::min(flags.size(), together.size()); ++i) {
    if (together[i] == flags[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the model was made with ", flags[i], ", and ", together[i], " was given"));
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Model>> MakeEvaluationModel(const Options& options,
                                                           const at::Device& device) {
  absl::StatusOr<std::unique_ptr<Model>> model = MakeModel(options.model);
  if (!model.ok()) return model;
  (*model)->MoveTo(device, options.dtype);
  (*model)->SetTraining(false);
  return model;
}

absl::Status LoadParameters(const CheckpointModel& checkpoint, const Model& model) {
  const auto loaded = LoadStateDict(checkpoint.state, model.StateDict());
  if (loaded.ok()) return absl::OkStatus();
  return absl::Status(loaded.status().code(), absl::StrCat("take the model from ", checkpoint.path,
                                                           ": ", loaded.status().message()));
}

at::Device PickDevice() {
  return torch::cuda::device_count() > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

}  // namespace muster::trainer
