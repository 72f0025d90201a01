#include "trainer/app/options/options.h"

#include <CLI/CLI.hpp>

#include <string>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/version.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/app/options/option_flags.h"
#include "trainer/app/options/settings.h"

namespace muster::trainer {
namespace {

std::string Description(const Registry& registry) {
  const std::string use =
      "Trains a network, alone or as one of the ranks that a launcher started.\n";
  if (registry.models.size() == 1) {
    return absl::StrCat(use, "`", registry.program, " eval` measures a trained one, `",
                        registry.program,
                        " consolidate` makes one file of a checkpoint in shards.");
  }
  return absl::StrCat(use, "Other commands, each with a --help of its own: `", registry.program,
                      " eval`, `generate` and `predict` use a\ntrained network, `compare` compares "
                      "ways to share the "
                      "work, `tokenize` turns text into tokens,\n`consolidate` makes one file of a "
                      "checkpoint in shards, and shards of a file,\n`schedule` shows how the "
                      "ranks of a pipeline take turns.");
}

// The shape as far as flags determine it.
DataShape ShapeFromFlags(const Options& options) {
  if (options.model.takes != DataShape::Kind::kText) return {.kind = options.model.takes};
  return {.kind = DataShape::Kind::kText,
          .classes = options.data.vocabulary > 0 ? options.data.vocabulary : kByteVocabulary,
          .context = options.data.context};
}

// Checks of combinations of flags.
constexpr double kLeastScale = 1e-30;

// Checks the flags of the mesh with one another and with other flags.
absl::Status CheckMeshFlags(const Options& options) {
  const auto mistake = [](const auto&... sentence) {
    return absl::InvalidArgumentError(absl::StrCat(sentence...));
  };
  const ParallelOptions& parallel = options.parallel;
  const MeshOptions& mesh = parallel.mesh;
  if (!mesh.request) {
    const char* const needless = mesh.micro_batches > 0             ? "--micro-batches"
                                 : mesh.chunks > 0                  ? "--pipeline-chunks"
                                 : !mesh.cuts.empty()               ? "--pipeline-cuts"
                                 : mesh.schedule != "1f1b"          ? "--pipeline-schedule"
                                 : mesh.driver != Driver::kSchedule ? "--pipeline-driver"
                                 : mesh.splits_sequence             ? "--sequence-parallel"
                                                                    : nullptr;
    if (needless != nullptr) {
      return mistake(needless, " is for ranks that share a model: add --mesh ",
                     mesh.splits_sequence ? "tp=2" : "pp=2", ", or another size");
    }
  }
  if (mesh.driver == Driver::kRpc && mesh.schedule != "1f1b" && mesh.schedule != "gpipe") {
    return mistake("--pipeline-driver rpc takes micro-batches in GPipe's order, and not by ",
                   "--pipeline-schedule ", mesh.schedule, ": leave out one of the two");
  }
  if (mesh.driver == Driver::kRpc && mesh.chunks > 1) {
    return mistake("--pipeline-driver rpc has one part of the model on each rank, and ",
                   "--pipeline-chunks says ", mesh.chunks, ": leave out one of the two");
  }
  if (!parallel.shares_model()) return absl::OkStatus();
  const char* const flag = mesh.request ? "--mesh" : "--zero";
  if (parallel.kind != Parallel::kDdp) return mistake(flag, " needs --parallel ddp");
  if (parallel.ddp.static_graph || parallel.ddp.find_unused_parameters) {
    return mistake(parallel.ddp.static_graph ? "--static-graph" : "--find-unused-parameters",
                   " is for DDP's buckets, which ", flag, " does without: leave one out");
  }
  if (parallel.ddp.comm_hook != CommHook::kNone) {
    return mistake("--comm-hook and ", flag, " do not go together: leave one out");
  }
  if (options.scales_losses()) {
    return mistake(flag, " does not scale losses: leave --fp16 and --loss-scale out");
  }
  return absl::OkStatus();
}

// Checks --qat with other flags.
absl::Status CheckQatFlags(const Options& options, const Registry& registry) {
  if (!options.qat.on) return absl::OkStatus();
  if (!options.model.can_be_quantized) {
    std::vector<std::string> can;
    for (const ModelRecipe& model : registry.models) {
      if (model.can_be_quantized) can.push_back(model.name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--qat cannot quantize ", options.model.name, "; ",
                     can.empty() ? absl::StrCat("no model of ", registry.program, " can be")
                                 : absl::StrCat("it can quantize ", absl::StrJoin(can, ", "))));
  }
  const ParallelOptions& parallel = options.parallel;
  const char* const other = parallel.kind != Parallel::kDdp ? "--parallel average or threads"
                            : parallel.mesh.request         ? "--mesh"
                            : parallel.zero > 0             ? "--zero"
                            : parallel.sync_batch_norm      ? "--sync-bn"
                            : options.bf16                  ? "--bf16"
                            : options.fp16                  ? "--fp16"
                            : options.scales_losses()       ? "--loss-scale"
                            : options.ema_decay > 0         ? "--ema"
                            : options.recompute             ? "--recompute"
                            // Ranges would change with each part.
                            : options.accumulate > 1                  ? "--accumulate"
                            : options.dtype != c10::ScalarType::Float ? "--dtype float64"
                                                                      : nullptr;
  if (other == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--qat and ", other, " do not go together: leave one out"));
}

absl::Status CheckTogether(const Options& options) {
  const auto mistake = [](const std::string& sentence) {
    return absl::InvalidArgumentError(sentence);
  };
  if (options.data.paths.empty() && !options.data_set.needs_data.empty()) {
    return mistake(options.data_set.needs_data);
  }
  const bool table = options.data_set.kind == DataShape::Kind::kTable;
  if (table == options.data.target.empty()) {
    return mistake(table ? "--dataset csv needs --target, the column that holds the classes"
                         : "--target is for --dataset csv");
  }
  if (table && (!options.data.tokenizer.empty() || options.data.vocabulary != 0)) {
    return mistake("--tokenizer and --vocabulary are for text and tokens, not tables");
  }
  // A gpt with images is reported once the data is known.
  const bool images = options.data_set.kind == DataShape::Kind::kImages &&
                      options.model.takes == DataShape::Kind::kImages;
  if (images && (!options.data.tokenizer.empty() || options.data.vocabulary != 0 ||
                 (!options.data.test_paths.empty() && !options.data_set.reads_test_data))) {
    return mistake("--tokenizer, --vocabulary and --test-data are for text and tokens, not images");
  }
  if (options.checkpoint.resume.empty()) return mistake("--resume is empty");
  if (options.checkpoint.keep_best && options.checkpoint.directory.empty()) {
    return mistake("--keep-best needs --checkpoint-dir");
  }
  if (!options.evaluate && (options.checkpoint.keep_best || options.early_stop > 0)) {
    return mistake(absl::StrCat(options.early_stop > 0 ? "--early-stop" : "--keep-best",
                                " needs the tests that --no-eval leaves out"));
  }
  if (options.bf16 && options.fp16) return mistake("--bf16 and --fp16 are two types: choose one");
  if (options.autocast_type() && options.dtype != c10::ScalarType::Float) {
    return mistake(absl::StrCat(options.bf16 ? "--bf16" : "--fp16", " needs --dtype float32"));
  }
  if (options.loss_scale > 0 && options.loss_scale < kLeastScale) {
    return mistake(
        "--loss-scale is 0 or at least 1e-30: gradients divided by less would be infinite");
  }
  if (options.scales_losses() && options.parallel.kind == Parallel::kThreads) {
    return mistake("--loss-scale and --fp16 need ranks: --parallel threads does not scale losses");
  }
  if (options.parallel.kind == Parallel::kThreads && options.accumulate > 1) {
    return mistake("--parallel threads has no --accumulate");
  }
  const DdpOptions& ddp = options.parallel.ddp;
  if (options.recompute && (ddp.find_unused_parameters || ddp.static_graph)) {
    return mistake(absl::StrCat("--recompute runs backward within the backward pass, which ",
                                ddp.static_graph ? "--static-graph" : "--find-unused-parameters",
                                " cannot follow"));
  }
  if (options.parallel.kind != Parallel::kDdp && !options.checkpoint.directory.empty()) {
    return mistake(
        "--checkpoint-dir needs --parallel ddp: the other ways are there to be compared");
  }
  if (options.parallel.kind == Parallel::kAverage && options.ema_decay > 0) {
    return mistake("--ema needs --parallel ddp: with average each rank has its own parameters");
  }
  if (options.parallel.kind != Parallel::kDdp && options.parallel.sync_batch_norm) {
    return mistake("--sync-bn needs --parallel ddp");
  }
  const absl::Status mesh = CheckMeshFlags(options);
  if (!mesh.ok()) return mesh;
  absl::Status schedule = CheckSchedule(options.schedule);
  // The cosine's length is a default at this point; the real one is not known yet.
  if (options.schedule.kind == ScheduleKind::kCosine) schedule = absl::OkStatus();
  return schedule;
}

}  // namespace

std::optional<c10::ScalarType> Options::autocast_type() const {
  if (bf16) return c10::ScalarType::BFloat16;
  if (fp16) return c10::ScalarType::Half;
  return std::nullopt;
}

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv, const Registry& registry,
                                     const std::vector<std::string>& other_flags) {
  absl::StatusOr<Options> options = ParseFlags(argc, argv, registry, other_flags);
  if (!options.ok() || !options->help.empty()) return options;
  if (const absl::Status status = CheckTogether(*options); !status.ok()) return status;
  if (const absl::Status status = CheckQatFlags(*options, registry); !status.ok()) return status;
  return options;
}

absl::StatusOr<Options> ParseFlags(int argc, const char* const* argv, const Registry& registry,
                                   const std::vector<std::string>& other_flags) {
  Options options;
  options.program = registry.program;
  if (!registry.default_data.empty()) options.data.paths = {registry.default_data};
  RawOptions raw;
  raw.model = registry.models.front().name;
  raw.data_set = registry.data_sets.front().name;
  raw.timeout_seconds = options.parallel.timeout.count();

  CLI::App app(Description(registry), registry.program);
  app.get_formatter()->column_width(40);
  app.set_help_flag("-h,--help", "Print this text");
  app.set_version_flag("--version", absl::StrCat(registry.program, " ", base::kVersion),
                       "Print the version");
  app.set_config("--config", "", "A file with a line flag=value for each (INI or TOML)")
      ->type_name("PATH");
  // If a flag is given twice, by a script and by a user, the last one counts.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.config_formatter(ConfigFormat(app, {"data", "test-data"}));
  app.allow_config_extras(CLI::config_extras_mode::error);
  SettingSource settings;
  const absl::Status added = AddFlags(app, registry, options, raw, settings);
  if (!added.ok()) return added;

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::CallForVersion& version) {
    options.help = absl::StrCat(version.what(), "\n");
    return options;
  } catch (const CLI::ParseError& error) {
    // The words after an unknown flag are its value. CLI11 2.1 would list all in reverse order.
    if (const std::vector<std::string> unknown = app.remaining(); !unknown.empty()) {
      std::vector<std::string> known = FlagNames(app);
      known.insert(known.end(), other_flags.begin(), other_flags.end());
      return absl::InvalidArgumentError(UnknownArgument(unknown.front(), known));
    }
    const std::string what = error.what();
    return absl::InvalidArgumentError(
        absl::StrCat(what, absl::EndsWith(what, "?") ? "" : ";", " --help lists the flags"));
  }
  options.parallel.timeout = std::chrono::seconds(raw.timeout_seconds);
  const bool named = registry.data_sets.size() > 1 && app.count("--dataset") > 0;
  if (named && registry.models.size() > 1 && app.count("--model") == 0) {
    raw.model = registry.DefaultModel(raw.data_set).name;
  }
  if (!raw.mesh.empty()) {
    const absl::StatusOr<MeshRequest> request = ParseMeshRequest(raw.mesh);
    if (!request.ok()) return request.status();
    options.parallel.mesh.request = *request;
  }
  if (!raw.cuts.empty()) options.parallel.mesh.cuts = absl::StrSplit(raw.cuts, ',');
  options.model = *registry.FindModel(raw.model);
  options.data_set = *registry.FindDataSet(named ? raw.data_set : "", options.model.takes);
  raw.data_set = options.data_set.name;
  options.optimizer.own = options.model.updates;
  options.schedule.own = options.model.updates.schedule;
  if (app.count("--lr") == 0) options.schedule.learning_rate = UsualLearningRate(options.optimizer);
  options.settings = settings.Read();
  if (app.count("--data") == 0 && !options.data_set.needs_data.empty()) options.data.paths.clear();
  options.data.seed = options.seed;
  options.data.augmentation.seed = options.seed;
  options.shape = ShapeFromFlags(options);
  return options;
}

std::vector<ModelFlag> ModelFlags(const Options& options) {
  std::vector<ModelFlag> flags;
  for (const Setting& setting : options.settings) {
    if (absl::c_linear_search(options.flags_of_models.at(options.model.name), setting.flag)) {
      flags.emplace_back(setting.flag, setting.value);
    }
  }
  if (options.shape.kind == DataShape::Kind::kText) {
    flags.emplace_back("--context", absl::StrCat(options.shape.context));
    flags.emplace_back("--vocabulary", absl::StrCat(options.shape.classes));
  }
  return flags;
}

absl::Status CheckBatchSize(std::int64_t batch_size, int parts) {
  if (batch_size >= parts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--batch-size ", batch_size,
                                                 " has no sample for each of ", parts,
                                                 " ranks; take ", parts, " or more"));
}

absl::Status CheckWorld(const Options& options, int world_size) {
  if (options.parallel.kind == Parallel::kThreads && world_size > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parallel threads is one process, and this is a world of ", world_size));
  }
  // A run that resumes may have another world size than it began with; whether this one resumes is
  // not known yet.
  if (!options.checkpoint.directory.empty()) return absl::OkStatus();
  // The number of ranks that share a batch is known once the mesh is made.
  if (options.parallel.mesh.request) return absl::OkStatus();
  return CheckBatchSize(options.batch_size, world_size);
}

}  // namespace muster::trainer
