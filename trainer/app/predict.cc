#include "trainer/app/commands.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/json.h"
#include "trainer/app/checkpoint_model.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/data/batch_loader.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/io/formats/files.h"
#include "trainer/models/autocast.h"
#include "trainer/runtime/process_setup.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kImagesAtOnce = 500;

enum class Split { kTest, kTrain, kAll };

struct PredictOptions {
  ModelSource source{.wanted = WantedModel::kImages};
  Split split = Split::kTest;
  std::int64_t top_k = 3;
  std::string output;
  std::vector<std::string> given;  // flags of muster-train
  std::string help;
};

absl::StatusOr<PredictOptions> ParsePredict(int argc, const char* const* argv,
                                            const std::string& program) {
  PredictOptions options;
  CLI::App app(
      absl::StrCat(
          "Says for each image or row of a data set which classes a trained model finds likely: a "
          "line of JSON each.\nThe data is that of the training, unless flags say otherwise. Those "
          "that are not listed here are ",
          program, "'s: --dataset, --data, --bf16, --threads, ..."),
      absl::StrCat(program, " predict"));
  app.allow_extras();
  AddCheckpointFlag(app, options.source, program);
  const FlagGroup group(app, "Options");
  group.Choice("--split", options.split,
               {{"test", Split::kTest}, {"train", Split::kTrain}, {"all", Split::kAll}},
               "Which images or rows of the data set; all: nothing is held out");
  group.Number("--top-k", options.top_k, 1, 1'000'000, "How many classes of each image");
  group.Add(app.add_option("--output", options.output, "Where the lines are written")
                ->type_name("PATH")
                ->default_str("standard output"));
  const absl::Status parsed = ParseCommand(app, argc, argv, options.help);
  if (!parsed.ok()) return parsed;
  options.given = app.remaining();
  return options;
}

using LineWriter = std::function<absl::Status(const std::string& lines)>;

// Class names, by class number; empty: classes have no names.
struct ClassNames {
  std::vector<std::string> of_model;
  std::vector<std::string> of_data;  // the same, followed by those unknown to the model
};

// null if there is no name.
base::Json NameOf(std::int64_t number, const std::vector<std::string>& names) {
  const auto at = static_cast<std::size_t>(number);
  return number >= 0 && at < names.size() ? base::Json(names[at]) : base::Json();
}

// The line for image `index`; `probabilities` (float64, a row) has one entry per class.
std::string LineOf(std::int64_t index, std::int64_t label, const at::Tensor& probabilities,
                   std::int64_t top_k, const ClassNames& names) {
  const auto [values, classes] =
      probabilities.topk(std::min(top_k, probabilities.size(0)), /*dim=*/0);
  base::Json line;
  line["index"] = index;
  const bool known = label >= 0 && label < probabilities.size(0);
  line["label"] = known ? base::Json(label) : base::Json();
  if (!names.of_data.empty()) line["label_name"] = NameOf(label, names.of_data);
  base::Json& top = line["top"] = base::Json::array();
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    const auto number = classes[i].item<std::int64_t>();
    base::Json& entry = top.emplace_back();
    entry["class"] = number;
    if (!names.of_model.empty()) entry["name"] = NameOf(number, names.of_model);
    entry["probability"] = values[i].item<double>();
  }
  return base::JsonText(line) + "\n";
}

// Writes the lines for `images`, numbered from `first`.
absl::Status WriteAll(const std::shared_ptr<const Dataset>& images, std::int64_t first,
                      const ClassNames& names, const Options& options, Model& model,
                      const at::Device& device, std::int64_t top_k, const LineWriter& write) {
  const at::NoGradGuard no_grad;
  const GlobalOrder order(images->size(), /*seed=*/0, /*epoch=*/0, /*shuffle=*/false);
  BatchLoader loader(images, order.From(0, kImagesAtOnce, /*rank=*/0, /*world_size=*/1),
                     {.epoch = 0, .train = false, .threads = options.loader_threads});
  for (;;) {
    const absl::StatusOr<std::optional<LoadedBatch>> next = loader.Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) return absl::OkStatus();
    const LoadedBatch& batch = **next;
    const Batch moved = MovedTo(batch.data, device, options.dtype);
    const Autocast autocast(options.autocast_type(), device.is_cuda());
    const at::Tensor probabilities =
        model.Forward(moved.inputs).to(at::kCPU, at::kDouble).softmax(/*dim=*/-1);
    std::string lines;
    for (std::int64_t i = 0; i < probabilities.size(0); ++i) {
      lines += LineOf(first + batch.plan.indices[static_cast<std::size_t>(i)],
                      batch.data.targets[i].item<std::int64_t>(), probabilities[i], top_k, names);
    }
    const absl::Status written = write(lines);
    if (!written.ok()) return written;
  }
}

absl::Status Predict(const PredictOptions& asked, const Registry& registry,
                     const LineWriter& write) {
  const auto checkpoint = ModelFromCheckpoint(asked.source, registry);
  if (!checkpoint.ok()) return checkpoint.status();
  SayWarnings(registry.program, checkpoint->warnings);
  absl::StatusOr<Options> options = OptionsOf(*checkpoint, asked.given, registry);
  if (!options.ok()) return options.status();
  SetThreads(options->threads > 0 ? options->threads : DefaultThreads(1));
  SetPrecision(options->tf32, options->deterministic);
  options->data.labels_needed = false;
  options->data.undivided = asked.split == Split::kAll;
  const absl::StatusOr<Splits> data = options->data_set.open(options->data);
  if (!data.ok()) return data.status();
  options->shape = data->test->shape();
  const at::Device device = PickDevice();
  const auto model = MakeEvaluationModel(*options, device);
  if (!model.ok()) return model.status();
  const absl::Status status = LoadParameters(*checkpoint, **model);
  if (!status.ok()) return status;
  ClassNames names{.of_model = checkpoint->facts.classes, .of_data = data->facts.classes};
  if (names.of_model.empty()) names.of_model = names.of_data;
  std::vector<std::shared_ptr<const Dataset>> splits;
  if (asked.split != Split::kTest) splits.push_back(data->train);
  if (asked.split == Split::kTest || (asked.split == Split::kAll && data->test != data->train)) {
    splits.push_back(data->test);
  }
  std::int64_t first = 0;
  for (const std::shared_ptr<const Dataset>& split : splits) {
    const absl::Status written =
        WriteAll(split, first, names, *options, **model, device, asked.top_k, write);
    if (!written.ok()) return written;
    first += split->size();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunPredict(int argc, const char* const* argv, const Registry& registry,
                               std::ostream& out) {
  const absl::StatusOr<PredictOptions> asked = ParsePredict(argc, argv, registry.program);
  if (!asked.ok()) return asked.status();
  if (!asked->help.empty()) {
    out << asked->help;
    return 0;
  }
  absl::Status status;
  if (asked->output.empty()) {
    // If the reader goes away, the process ends like any other filter.
    std::signal(SIGPIPE, SIG_DFL);
    status = Predict(*asked, registry, [&out](const std::string& lines) {
      if (out << lines << std::flush) return absl::OkStatus();
      return absl::UnavailableError("predict: the standard output cannot be written");
    });
  } else {
    auto file = DurableFile::Create(asked->output);
    if (!file.ok()) return file.status();
    status = Predict(*asked, registry,
                     [&file](const std::string& lines) { return (*file)->Append(lines); });
    if (status.ok()) status = (*file)->Commit();
  }
  if (!status.ok()) return status;
  return 0;
}

}  // namespace muster::trainer
