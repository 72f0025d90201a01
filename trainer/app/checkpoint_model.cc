#include "trainer/app/checkpoint_model.h"

#include <torch/cuda.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/io/checkpoint_file.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/state_dict.h"
#include "trainer/quant/qat_options.h"

namespace muster::trainer {
namespace {

constexpr char kHeadsFlag[] = "--heads";

// The contents of a file.
struct Contents {
  std::string path;
  Value value;
  std::vector<std::string> warnings;
};

absl::StatusOr<Contents> ReadContents(const std::string& given) {
  absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(given);
  if (!found.ok()) return found.status();
  const std::string& path = found->path;
  if (IsSafetensors(path)) {
    const absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(path);
    if (!contents.ok()) return contents.status();
    return Contents{path, StateDictValue(contents->tensors), {}};
  }
  absl::StatusOr<Value> value = ReadCheckpoint(path);
  if (!value.ok()) return value.status();
  return Contents{path, *std::move(value), std::move(found->warnings)};
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

// Whether it was trained with --qat.
bool HoldsRanges(const Value& state) {
  for (const auto& [key, value] : *state.dict()) {
    if (IsOfFakeQuantize(std::get<std::string>(key))) return true;
  }
  return false;
}

absl::Status CheckWanted(const ModelRecipe& model, WantedModel wanted, const std::string& program) {
  using Kind = DataShape::Kind;
  if (model.takes == Kind::kText && wanted == WantedModel::kImages) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is a text model (", model.name, "); use `", program, " generate`"));
  }
  if (model.takes == Kind::kImages && wanted == WantedModel::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is an image model (", model.name, "); use `", program, " predict`"));
  }
  return absl::OkStatus();
}

// The recognized recipe, and the flags known so far.
struct Recognized {
  ModelRecipe recipe;
  std::vector<ModelFlag> flags;
};

// The recipe that the checkpoint names, or else the one that matches its tensors.
absl::StatusOr<Recognized> Recognize(const Value& checkpoint, const TensorShapes& shapes,
                                     const Registry& registry) {
  const absl::StatusOr<std::string> name = checkpoint.GetString("model_name");
  std::vector<std::string> names;
  for (const ModelRecipe& recipe : registry.models) {
    names.push_back(recipe.name);
    if (name.ok() && *name != recipe.name) continue;
    auto flags = recipe.recognize ? recipe.recognize(shapes) : std::vector<ModelFlag>();
    if (flags) return Recognized{recipe, *std::move(flags)};
  }
  if (name.ok() && registry.FindModel(*name) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its model is ", *name, ", and ", registry.program, " has ", absl::StrJoin(names, ", ")));
  }
  return absl::InvalidArgumentError(absl::StrCat("its parameters are not those of a model that ",
                                                 registry.program, " has (",
                                                 absl::StrJoin(names, ", "), ")"));
}

// The options of `model` without any other flag.
absl::StatusOr<Options> PlainOptions(const ModelRecipe& model, const Registry& registry) {
  const std::string chosen = absl::StrCat("--model=", model.name);
  const char* const words[] = {registry.program.c_str(), chosen.c_str()};
  return ParseFlags(registry.models.size() > 1 ? 2 : 1, words, registry);
}

// A file of unknown origin must not inject flags into the program.
absl::Status CheckStored(const std::map<std::string, std::string>& stored, const ModelRecipe& model,
                         const Registry& registry) {
  const absl::StatusOr<Options> plain = PlainOptions(model, registry);
  if (!plain.ok()) return plain.status();
  const std::vector<ModelFlag> own = ModelFlags(*plain);
  for (const auto& [flag, value] : stored) {
    const auto same = [&flag = flag](const ModelFlag& known) { return known.first == flag; };
    if (std::none_of(own.begin(), own.end(), same)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it gives the model the flag '", absl::CEscape(flag), "', and ", model.name,
                       " has no such flag: it was made by another program, or is damaged"));
    }
    if (absl::StrContains(value, '\0')) {
      return absl::InvalidArgumentError(
          absl::StrCat("its value of ", flag, " holds a zero byte: the file is damaged"));
    }
  }
  return absl::OkStatus();
}

// Adds the flags that the checkpoint stores and that its tensors do not determine.
absl::Status AddStoredFlags(const Value& checkpoint, const ModelSource& source,
                            const ModelRecipe& model, const Registry& registry,
                            std::vector<ModelFlag>& flags) {
  std::map<std::string, std::string> stored;
  const Value* const values = checkpoint.Find("model_flags");
  if (values != nullptr && values->dict() != nullptr) {
    for (const auto& [key, value] : *values->dict()) {
      const auto* flag = std::get_if<std::string>(&key);
      if (flag != nullptr && value.string() != nullptr) stored[*flag] = *value.string();
    }
  }
  const absl::Status ours = CheckStored(stored, model, registry);
  if (!ours.ok()) return ours;
  for (auto& [flag, value] : flags) {
    const auto found = stored.find(flag);
    const std::string says = found == stored.end() ? "" : found->second;
    if (found != stored.end()) stored.erase(found);
    if (!value.empty()) continue;
    const std::string given =
        flag == kHeadsFlag && source.heads > 0 ? absl::StrCat(source.heads) : "";
    if (says.empty() && given.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("neither the file nor its parameters say how many attention heads the model "
                       "has; give the ",
                       flag, " of the training"));
    }
    if (!says.empty() && !given.empty() && says != given) {
      return absl::InvalidArgumentError(absl::StrCat("it was made with ", flag, " ", says, ", and ",
                                                     flag, " ", given, " was given"));
    }
    value = says.empty() ? given : says;
  }
  flags.insert(flags.end(), stored.begin(), stored.end());
  return absl::OkStatus();
}

std::vector<std::string> AsArguments(const std::vector<ModelFlag>& flags) {
  std::vector<std::string> arguments;
  for (const auto& [flag, value] : flags) arguments.push_back(absl::StrCat(flag, "=", value));
  return arguments;
}

// The value of each flag that determines the model: "--width=128".
std::vector<std::string> ModelArguments(const Options& options) {
  std::vector<std::string> arguments = AsArguments(ModelFlags(options));
  arguments.push_back(absl::StrCat("--model=", options.model.name));
  return arguments;
}

// "--width" of "--width=128", "--flip" of "--no-flip".
std::string NameOfFlag(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  return absl::StartsWith(name, "--no-") ? absl::StrCat("--", name.substr(5)) : name;
}

// Whether the flag `given` makes the training's `argument` meaningless: other data has other files
// and columns, other files have their own test files, and generated data has neither.
bool Replaces(const std::string& given, const std::string& argument) {
  const std::string flag = NameOfFlag(argument);
  const bool files = flag == "--data" || flag == "--test-data";
  return given == flag || (given == "--dataset" && (files || flag == "--target")) ||
         (given == "--data" && (files || argument == "--dataset=generated"));
}

// The checkpoint's flags about its data, and about the type used for computation.
absl::StatusOr<std::vector<std::string>> DataFlags(const Value& checkpoint,
                                                   const std::vector<ModelFlag>& known,
                                                   const Registry& registry) {
  std::vector<std::string> arguments;
  const Value* const stored = checkpoint.Find("options");
  if (stored == nullptr || stored->dict() == nullptr) return arguments;
  // Parsed only to list all flags.
  const char* const nothing[] = {registry.program.c_str()};
  const absl::StatusOr<Options> options = ParseOptions(1, nothing, registry);
  if (!options.ok()) return options.status();
  for (const Setting& setting : options->settings) {
    const bool of_data = setting.group == "Data" && setting.flag != "--loader-threads";
    // The test share was drawn with the seed.
    if (!of_data && setting.flag != "--bf16" && setting.flag != "--seed") continue;
    const bool recognized = std::any_of(known.begin(), known.end(), [&](const ModelFlag& flag) {
      return flag.first == setting.flag;
    });
    const absl::StatusOr<std::string> value = stored->GetString(setting.flag);
    if (recognized || !value.ok()) continue;
    if (absl::StrContains(*value, '\0')) {
      return absl::InvalidArgumentError(
          absl::StrCat("its value of ", setting.flag, " holds a zero byte: the file is damaged"));
    }
    if (!setting.list) {
      arguments.push_back(absl::StrCat(setting.flag, "=", *value));
      continue;
    }
    for (const absl::string_view item : absl::StrSplit(*value, '\n')) {
      arguments.push_back(absl::StrCat(setting.flag, "=", item));
    }
  }
  return arguments;
}

}  // namespace

absl::StatusOr<CheckpointModel> ModelFromCheckpoint(const ModelSource& source,
                                                    const Registry& registry) {
  absl::StatusOr<Contents> contents = ReadContents(source.checkpoint);
  if (!contents.ok()) return contents.status();
  const auto refused = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("take the model from ", contents->path, ": ",
                                                    status.message()));
  };
  const Value& value = contents->value;
  const absl::StatusOr<const Value*> state = FindStateDict(value);
  if (!state.ok()) return refused(state.status());
  absl::StatusOr<Recognized> known = Recognize(value, ShapesOf(**state), registry);
  if (!known.ok()) return refused(known.status());
  absl::Status status = CheckWanted(known->recipe, source.wanted, registry.program);
  if (status.ok()) status = AddStoredFlags(value, source, known->recipe, registry, known->flags);
  if (!status.ok()) return refused(status);
  absl::StatusOr<std::vector<std::string>> data_flags = DataFlags(value, known->flags, registry);
  if (!data_flags.ok()) return refused(data_flags.status());
  absl::StatusOr<DataFacts> facts = ReadFacts(value);
  if (!facts.ok()) return refused(facts.status());
  CheckpointModel checkpoint{.path = contents->path,
                             .flags = AsArguments(known->flags),
                             .data_flags = *std::move(data_flags),
                             .facts = *std::move(facts),
                             .step = {},
                             .state = **state,
                             .warnings = std::move(contents->warnings)};
  if (registry.models.size() > 1) {
    checkpoint.flags.insert(checkpoint.flags.begin(), absl::StrCat("--model=", known->recipe.name));
  }
  if (HoldsDoubles(checkpoint.state)) checkpoint.flags.push_back("--dtype=float64");
  if (HoldsRanges(checkpoint.state)) checkpoint.flags.push_back("--qat=true");
  if (const Value* sampler = value.Find("sampler"); sampler != nullptr) {
    const absl::StatusOr<std::int64_t> step = sampler->GetInt("step");
    if (step.ok()) checkpoint.step = *step;
  }
  return checkpoint;
}

absl::StatusOr<Options> OptionsOf(const CheckpointModel& checkpoint,
                                  const std::vector<std::string>& given, const Registry& registry) {
  std::vector<std::string> words = {registry.program};
  const auto add = [&words](const std::string& flag) {
    // After "--note=" without a value, CLI11 would take the next word as the value.
    const std::size_t equals = flag.find('=');
    words.push_back(equals + 1 == flag.size() ? flag.substr(0, equals) : flag);
    if (equals + 1 == flag.size()) words.emplace_back();
  };
  for (const std::string& flag : checkpoint.data_flags) {
    const bool overridden = std::any_of(given.begin(), given.end(), [&](const std::string& other) {
      return Replaces(NameOfFlag(other), flag);
    });
    if (!overridden) add(flag);
  }
  for (const std::string& flag : checkpoint.flags) add(flag);
  words.insert(words.end(), given.begin(), given.end());
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  absl::StatusOr<Options> options =
      ParseOptions(static_cast<int>(arguments.size()), arguments.data(), registry);
  if (!options.ok()) return options;
  options->data.known = checkpoint.facts;
  for (const std::string& together : ModelArguments(*options)) {
    for (const std::string& made_with : checkpoint.flags) {
      if (NameOfFlag(made_with) != NameOfFlag(together) || made_with == together) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the model was made with ", made_with, ", and ", together, " was given"));
    }
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Model>> MakeEvaluationModel(const Options& options,
                                                           const at::Device& device) {
  absl::StatusOr<std::unique_ptr<Model>> model = MakeChosenModel(options, device);
  if (model.ok()) (*model)->SetTraining(false);
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
