#include "trainer/app/commands.h"

#include <ATen/core/Tensor.h>

#include <CLI/CLI.hpp>

#include <cmath>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/json.h"
#include "trainer/app/checkpoint_model.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/app/program.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/agreement.h"
#include "trainer/app/training/evaluation.h"
#include "trainer/app/training/reports.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/comm/world.h"
#include "trainer/data/datasets.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/process_setup.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

struct EvalOptions {
  ModelSource source;
  bool json = false;
  std::vector<std::string> given;      // flags of muster-train
  std::vector<std::string> own_flags;  // the command's, without dashes
  std::string help;
};

absl::StatusOr<EvalOptions> ParseEval(int argc, const char* const* argv, const Registry& registry) {
  EvalOptions options;
  CLI::App app(
      absl::StrCat(
          "Measures a trained model on the test samples, alone or as one of the ranks that a "
          "launcher started.\nThe data is that of the training, unless flags say otherwise. Those "
          "that are not listed here are ",
          registry.program, "'s: ", registry.data_sets.size() > 1 ? "--dataset, " : "",
          "--data, --bf16, --comm, --threads, ..."),
      absl::StrCat(registry.program, " eval"));
  app.allow_extras();
  AddCheckpointFlag(app, options.source, registry.program);
  if (registry.FindModel("gpt") != nullptr) AddHeadsFlag(app, options.source);
  app.add_flag("--json", options.json, "Write one JSON object");
  const absl::Status parsed = ParseCommand(app, argc, argv, options.help);
  if (!parsed.ok()) return parsed;
  options.given = app.remaining();
  options.own_flags = FlagNames(app);
  return options;
}

// The options from the command line only, without those of the checkpoint.
absl::StatusOr<Options> GivenAlone(const EvalOptions& asked, const Registry& registry) {
  std::vector<const char*> arguments = {registry.program.c_str()};
  for (const std::string& word : asked.given) arguments.push_back(word.c_str());
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data(), registry,
                    asked.own_flags);
}

// Everything known before the ranks meet, from the command line only. Never throws, unlike a
// recipe's flags: failures must be reported to the other ranks.
absl::StatusOr<Options> Prepare(const absl::StatusOr<EvalOptions>& asked,
                                const Registry& registry) {
  absl::Status failure = asked.status();
  try {
    absl::StatusOr<Options> options =
        asked.ok() ? GivenAlone(*asked, registry) : absl::StatusOr<Options>(failure);
    if (options.ok()) return options;
    failure = options.status();
  } catch (const std::exception& error) {
    failure = FailureOf("", error);
  }
  return BeforeJoining(failure, ParallelOptions().timeout);
}

// The model, its data and the results.
struct Measured {
  CheckpointModel checkpoint;  // complete on rank 0; elsewhere only its flags
  Options options;             // of the model and of the data
  std::int64_t samples = 0;
  Evaluation evaluation;
};

// Rank 0's checkpoint: complete on rank 0, flags and data facts on all ranks.
absl::StatusOr<CheckpointModel> ReadOnRankZero(const ModelSource& source, const Registry& registry,
                                               Group& group) {
  absl::StatusOr<CheckpointModel> mine = CheckpointModel();
  if (group.rank() == 0) mine = ModelFromCheckpoint(source, registry);
  for (const auto flags : {&CheckpointModel::flags, &CheckpointModel::data_flags}) {
    const absl::string_view end("\0", 1);
    const absl::StatusOr<std::string> all =
        FromRankZero(mine.ok() ? absl::StatusOr<std::string>(absl::StrJoin((*mine).*flags, end))
                               : absl::StatusOr<std::string>(mine.status()),
                     group);
    if (!all.ok()) return all.status();
    if (group.rank() != 0) (*mine).*flags = absl::StrSplit(*all, end, absl::SkipEmpty());
  }
  const absl::StatusOr<std::string> facts = FromRankZero(PackFacts(mine->facts), group);
  if (!facts.ok()) return facts.status();
  if (group.rank() != 0) mine->facts = UnpackFacts(*facts);
  return mine;
}

// Sends rank 0's parameters and buffers to all ranks.
absl::Status ShareParameters(const CheckpointModel& checkpoint, const Model& model, Group& group) {
  const absl::Status mine =
      group.rank() == 0 ? LoadParameters(checkpoint, model) : absl::OkStatus();
  const absl::Status all =
      FromRankZero(mine.ok() ? absl::StatusOr<std::string>("") : mine, group).status();
  if (!all.ok() || group.size() == 1) return all;
  std::vector<at::Tensor> state;
  for (const NamedTensor& named : model.StateDict()) state.push_back(named.tensor.detach());
  group.Broadcast(state, /*root=*/0, Use::kOther);
  return absl::OkStatus();
}

// The data that the options name; never throws.
absl::StatusOr<Splits> DataOf(const absl::StatusOr<Options>& options) {
  if (!options.ok()) return options.status();
  try {
    return OpenData(options->data_set, options->data);
  } catch (...) {
    return FailureNow("");
  }
}

absl::StatusOr<Measured> Measure(const EvalOptions& asked, const Registry& registry,
                                 const Environment& env, Group& group) {
  absl::StatusOr<CheckpointModel> checkpoint = ReadOnRankZero(asked.source, registry, group);
  if (!checkpoint.ok()) return checkpoint.status();
  absl::StatusOr<Options> options = OptionsOf(*checkpoint, asked.given, registry);
  const absl::StatusOr<Splits> data = DataOf(options);
  const absl::Status opened = FirstFailure(data.status(), group);
  if (!opened.ok()) return opened;
  const absl::Status alike = CheckRanksAlike(FactsOf(options->settings, *data), group);
  if (!alike.ok()) return alike;
  options->shape = data->test->shape();
  const auto model = MakeEvaluationModel(*options, group.device());
  if (!model.ok()) return model.status();
  const absl::Status status = ShareParameters(*checkpoint, **model, group);
  if (!status.ok()) return status;

  BeatSender beats(env.beat_socket, env.rank);
  const auto on_batch = [&beats] {
    beats.Send(0);  // not a step, but a sign of progress
    return false;
  };
  const auto measure = [&](const LoadedBatch& batch) {
    return MeasureBatch(batch, *options, group.device(), **model);
  };
  const auto evaluation =
      Evaluate(data->test, *options, {group.rank(), group.size()}, group, measure, on_batch);
  if (!evaluation.ok()) return evaluation.status();
  return Measured{*std::move(checkpoint), *std::move(options), data->test->size(), **evaluation};
}

bool IsText(const Measured& measured) {
  return measured.options.model.takes == DataShape::Kind::kText;
}

// What tokens are called.
const char* TokenName(const Measured& measured) {
  const bool bytes =
      measured.options.data.tokenizer.empty() && measured.options.shape.classes == kByteVocabulary;
  return bytes ? "byte" : "token";
}

base::Json AsJson(const Measured& measured) {
  base::Json json;
  json["checkpoint"] = measured.checkpoint.path;
  json["model"] = measured.options.model.name;
  if (measured.checkpoint.step) json["step"] = *measured.checkpoint.step;
  json["data"] = DataName(measured.options);
  json["samples"] = measured.samples;
  json["loss"] = measured.evaluation.loss;
  for (const MetricValue& metric : measured.evaluation.metrics) json[metric.name] = *metric.value;
  if (IsText(measured)) {
    json["perplexity"] = std::exp(measured.evaluation.loss);
    json[absl::StrCat("bits_per_", TokenName(measured))] = measured.evaluation.loss / std::log(2.0);
  }
  return json;
}

std::string AsLines(const Measured& measured) {
  const std::optional<std::int64_t>& step = measured.checkpoint.step;
  std::string text = absl::StrFormat(
      "checkpoint     %s (%s%s)\n"
      "data           %s, %d test %s\n"
      "test loss      %.4f\n",
      measured.checkpoint.path, measured.options.model.name,
      step ? absl::StrCat(", after step ", *step) : "", DataName(measured.options),
      measured.samples, SampleUnit(measured.options.shape.kind), measured.evaluation.loss);
  if (IsText(measured)) {
    absl::StrAppendFormat(
        &text, "perplexity     %.4f\n%-15s%.4f\n", std::exp(measured.evaluation.loss),
        absl::StrCat("bits per ", TokenName(measured)), measured.evaluation.loss / std::log(2.0));
  }
  for (const MetricValue& metric : measured.evaluation.metrics) {
    absl::StrAppendFormat(&text, "%-15s%s\n", "test " + metric.name + " ", ValueText(metric));
  }
  return text;
}

}  // namespace

absl::StatusOr<int> RunEval(int argc, const char* const* argv, const Registry& registry,
                            std::ostream& out) {
  const absl::StatusOr<EvalOptions> asked = ParseEval(argc, argv, registry);
  if (asked.ok() && !asked->help.empty()) {
    out << asked->help;
    return 0;
  }
  const absl::StatusOr<Options> options = Prepare(asked, registry);
  if (!options.ok()) return options.status();
  const absl::StatusOr<Environment> env = ReadEnvironment(LookupInProcess);
  if (!env.ok()) return env.status();
  SetThreads(options->threads > 0 ? options->threads : DefaultThreads(env->local_world_size));
  SetPrecision(options->tf32, options->deterministic);

  auto joined = World::Join(*env, options->parallel.comm, options->parallel.timeout);
  if (!joined.ok()) return joined.status();
  LeftOnFailure<World> world(*std::move(joined));
  absl::StatusOr<Measured> measured = absl::UnknownError("");
  try {
    measured = Measure(*asked, registry, *env, world->all());
    if (!measured.ok()) return measured.status();
    // Rank 0 may serve the store, so it leaves with the others.
    world->all().Barrier();
  } catch (...) {
    return FailureNow("eval");
  }
  world.Destroy();
  if (env->rank != 0) return 0;
  SayWarnings(registry.program, measured->checkpoint.warnings);
  out << (asked->json ? base::JsonText(AsJson(*measured)) + "\n" : AsLines(*measured));
  return 0;
}

}  // namespace muster::trainer
