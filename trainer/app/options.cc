#include "trainer/app/options.h"

#include <CLI/CLI.hpp>

#include <limits>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

constexpr char kDescription[] =
    "Trains an image classifier, alone or as one of the ranks that a launcher started.";

// The words by which enum values are given on the command line.
const std::map<std::string, DatasetKind> kDatasets = {{"idx", DatasetKind::kIdx},
                                                      {"generated", DatasetKind::kGenerated}};
const std::map<std::string, ModelKind> kModels = {{"cnn", ModelKind::kCnn},
                                                  {"mlp", ModelKind::kMlp}};
const std::map<std::string, at::ScalarType> kDtypes = {{"float32", at::kFloat},
                                                       {"float64", at::kDouble}};
const std::map<std::string, Comm> kComms = {
    {"auto", Comm::kAuto}, {"gloo", Comm::kGloo}, {"nccl", Comm::kNccl}};

template <typename Enum>
void AddChoice(CLI::App& app, const std::string& flag, Enum& value,
               const std::map<std::string, Enum>& words, const std::string& description) {
  std::string names;
  for (const auto& [word, meaning] : words) absl::StrAppend(&names, names.empty() ? "" : "|", word);
  const auto check = [&words, names](const std::string& text) {
    return words.count(text) != 0 ? std::string() : absl::StrCat(text, " is not one of ", names);
  };
  app.add_option_function<std::string>(
         flag, [&value, &words](const std::string& text) { value = words.at(text); }, description)
      ->check(CLI::Validator(check, ""))
      ->type_name(names);
}

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv) {
  constexpr auto kMany = std::numeric_limits<std::int64_t>::max();
  Options options;
  std::int64_t timeout_seconds = options.timeout.count();

  CLI::App app(kDescription, "muster-train");
  AddChoice(app, "--dataset", options.dataset, kDatasets,
            "idx: read --data; generated: make one up");
  app.add_option("--data", options.data_dir,
                 "Directory of (Fashion-)MNIST's four IDX files, plain or .gz")
      ->capture_default_str();
  AddChoice(app, "--model", options.model, kModels, "The network to train (default cnn)");
  AddChoice(app, "--dtype", options.dtype, kDtypes, "Type of the parameters (default float32)");
  app.add_option("--epochs", options.epochs, "Passes over the training images")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--batch-size", options.batch_size, "Images in a step, over all ranks together")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "Learning rate of SGD")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the parameters and of the order of the images")
      ->capture_default_str();
  app.add_option("--max-steps", options.max_steps, "End after this many steps; 0: no limit")
      ->check(CLI::Range(std::int64_t{0}, kMany))
      ->capture_default_str();
  app.add_flag("--eval,!--no-eval", options.evaluate,
               "Measure accuracy after each epoch (default)");
  app.add_option("--checkpoint", options.checkpoint, "Where rank 0 writes the state dict")
      ->capture_default_str();
  app.add_option("--loss-log", options.loss_log, "Where rank 0 writes each step's loss");
  AddChoice(app, "--comm", options.comm, kComms, "How ranks exchange gradients (default auto)");
  app.add_option("--timeout", timeout_seconds, "Seconds to wait for another rank")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Threads of each rank; 0: OMP_NUM_THREADS, or a share of the processors")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), "; --help lists the flags"));
  }
  if (options.checkpoint.empty()) return absl::InvalidArgumentError("--checkpoint is empty");
  options.timeout = std::chrono::seconds(timeout_seconds);
  return options;
}

absl::Status CheckBatchSize(const Options& options, int world_size) {
  if (options.batch_size % world_size == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--batch-size ", options.batch_size, " cannot be shared evenly by ", world_size, " ranks"));
}

}  // namespace muster::trainer
