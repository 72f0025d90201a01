#include "trainer/app/compare.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "base/json.h"
#include "trainer/app/muster_run.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/app/options/options.h"
#include "trainer/runtime/process_setup.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

struct ComparisonOptions {
  int ranks = 2;
  int scaling = 0;  // the most ranks of the table over ranks; 0: there is none
  std::vector<std::string> methods = {"single", "threads", "average", "ddp"};
  std::string launcher;
  std::vector<std::string> training;   // flags of muster-train
  std::vector<std::string> own_flags;  // without dashes
  std::string help;
};

// Stands for the number of ranks in the flags of a method.
constexpr char kRanks[] = "RANKS";

// A way to train on several ranks.
struct Method {
  const char* name;
  const char* description;
  std::vector<std::string> flags;  // that make it so
  int ranks_divide_by = 1;         // what the number of ranks must be a multiple of
};

const std::vector<Method>& Methods() {
  static const std::vector<Method> kMethods = {
      {"single", "one process", {"--parallel", "ddp"}},
      // Where others have GPUs, it does not.
      {"threads",
       "replicas in one process, on the CPU (DataParallel)",
       {"--parallel", "threads", "--replicas", kRanks, "--comm", "gloo"}},
      {"average", "of parameters", {"--parallel", "average"}},
      {"ddp", "of gradients", {"--parallel", "ddp"}},
      {"zero1", "ddp with the optimizer's state shared", {"--zero", "1"}},
      {"zero2", "and gradients", {"--zero", "2"}},
      {"zero3", "and parameters", {"--zero", "3"}},
      {"tp", "layers split over ranks", {"--mesh", absl::StrCat("tp=", kRanks)}},
      {"pp", "a pipeline of ranks", {"--mesh", absl::StrCat("pp=", kRanks)}},
      {"3d", "pipeline and layers over 2 each, the rest data ranks", {"--mesh", "pp=2,tp=2"}, 4},
  };
  return kMethods;
}

const Method* FindMethod(const std::string& name) {
  for (const Method& method : Methods()) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

std::string MethodsText() {
  std::string text;
  for (const Method& method : Methods()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", method.name, ": ", method.description);
  }
  return text;
}

absl::StatusOr<ComparisonOptions> ParseCompare(int argc, const char* const* argv) {
  ComparisonOptions options;
  CLI::App app(
      "Trains the same model on the same data in several ways, and shows speed, bytes moved in a "
      "step and loss.\nFlags that are not listed here are those of muster-train, for each "
      "training.",
      "muster-train compare");
  app.allow_extras();
  app.add_option("--ranks", options.ranks, "Ranks of each method but single; replicas of threads")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  std::vector<std::string> names;
  for (const Method& method : Methods()) names.emplace_back(method.name);
  app.add_option("--methods", options.methods, MethodsText())
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->default_str("single,threads,average,ddp");
  app.add_option("--scaling", options.scaling,
                 "Also train with ddp and threads on 1 to N ranks, and show what is sent beside "
                 "2(N-1)K/N and 2(N-1)K")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  app.add_option("--launcher", options.launcher,
                 "The muster that starts the ranks (default: the one beside muster-train, or in "
                 "PATH)")
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat("compare: ", error.what()));
  }
  options.training = app.remaining();
  options.own_flags = FlagNames(app);
  return options;
}

// A directory that goes with this object.
class ScratchDir {
 public:
  ScratchDir() : path_((fs::temp_directory_path() / "muster-compare-XXXXXX").string()) {
    made_ = mkdtemp(path_.data()) != nullptr;
  }
  ~ScratchDir() {
    std::error_code ignored;
    if (made_) fs::remove_all(path_, ignored);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  bool made() const { return made_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool made_;
};

// The latest value of each name in a file of metrics.
base::Json LatestValues(const std::string& path) {
  base::Json latest = base::Json::object();
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto record = base::ParseJson(line);
    if (record.is_object()) latest.update(record);
  }
  return latest;
}

double Number(const base::Json& values, const char* name) {
  const auto found = values.find(name);
  return found != values.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

absl::StatusOr<MethodResult> RunMethod(const Method& method, const std::string& launcher,
                                       const ComparisonOptions& compare, const Options& options,
                                       const ScratchDir& scratch) {
  const std::string metrics = scratch.Path(absl::StrCat(method.name, ".jsonl"));
  std::vector<std::string> arguments = compare.training;
  const auto add = [&arguments](const std::string& flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  for (const std::string& word : method.flags) {
    arguments.push_back(absl::StrReplaceAll(word, {{kRanks, absl::StrCat(compare.ranks)}}));
  }
  add("--metrics", metrics);
  // Every worker, rank or replica, has the same share of the processors.
  if (options.threads == 0) add("--threads", absl::StrCat(DefaultThreads(compare.ranks)));
  const std::string name = method.name;
  const bool alone = name == "single" || name == "threads";
  const absl::Status run = RunByMuster(launcher, arguments, alone ? 1 : compare.ranks);
  if (!run.ok()) return absl::Status(run.code(), absl::StrCat(name, ": ", run.message()));

  const base::Json values = LatestValues(metrics);
  if (!values.contains("summary/samples_per_second")) {
    return absl::UnavailableError(
        absl::StrCat(name, ": ", launcher, " succeeded, but no training reported its speed"));
  }
  MethodResult result;
  result.name = name;
  result.samples_per_second = Number(values, "summary/samples_per_second");
  result.counted_bytes = Number(values, "summary/counted_bytes_per_step");
  result.formula_bytes = Number(values, "summary/formula_bytes_per_step");
  result.model_bytes = Number(values, "summary/model_bytes");
  result.state_bytes = Number(values, "summary/state_bytes");
  result.state_formula = Number(values, "summary/state_formula_bytes");
  result.bubble = Number(values, "summary/bubble");
  result.bubble_theory = Number(values, "summary/bubble_theory");
  result.train_loss = Number(values, "summary/train_loss");
  result.test_loss = Number(values, "test/loss");
  result.test_accuracy = Number(values, "test/accuracy");
  return result;
}

std::string OrDash(double value, const std::string& text) {
  return std::isnan(value) ? "-" : text;
}

std::string InMegabytes(double bytes) {
  return OrDash(bytes, absl::StrFormat("%.3f", bytes / 1e6));
}

std::string Percent(double share, int digits) {
  return OrDash(share, absl::StrFormat("%.*f %%", digits, share * 100));
}

// OK unless `training` has a flag of which each method would make something else: a place that
// several trainings would write to, or what the methods themselves are.
absl::Status CheckTraining(const Options& training) {
  const CheckpointOptions& checkpoint = training.checkpoint;
  const char* const flag = !checkpoint.directory.empty()              ? "--checkpoint-dir"
                           : !checkpoint.final_path.empty()           ? "--checkpoint"
                           : !checkpoint.export_path.empty()          ? "--export"
                           : !training.report.loss_log.empty()        ? "--loss-log"
                           : !training.report.metrics.empty()         ? "--metrics"
                           : !training.report.trace.empty()           ? "--trace"
                           : training.parallel.mesh.request           ? "--mesh"
                           : training.parallel.zero > 0               ? "--zero"
                           : training.parallel.kind != Parallel::kDdp ? "--parallel"
                                                                      : nullptr;
  if (flag == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("compare: ", flag,
                   " cannot be the same for several trainings; leave it out, or run "
                   "muster-train by itself"));
}

absl::StatusOr<std::vector<ScalingRow>> RunScaling(const std::string& launcher,
                                                   const ComparisonOptions& compare,
                                                   const Options& options,
                                                   const ScratchDir& scratch, std::ostream& out) {
  std::vector<ScalingRow> rows;
  for (int ranks = 1; ranks <= compare.scaling; ++ranks) {
    out << "running ddp and threads on " << ranks << "\n" << std::flush;
    ComparisonOptions with = compare;
    with.ranks = ranks;
    ScalingRow row;
    row.ranks = ranks;
    for (MethodResult* const result : {&row.ddp, &row.threads}) {
      const char* const name = result == &row.ddp ? "ddp" : "threads";
      auto run = RunMethod(*FindMethod(name), launcher, with, options, scratch);
      if (!run.ok()) return run.status();
      *result = *std::move(run);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string FormatComparison(const std::vector<MethodResult>& results) {
  std::string table =
      absl::StrFormat("%-8s %11s %8s %12s %12s %9s %9s %7s %7s %10s %9s %9s\n", "method",
                      "samples/s", "speed-up", "MB/step", "formula", "state MB", "formula",
                      "bubble", "theory", "train loss", "test loss", "accuracy");
  for (const MethodResult& r : results) {
    absl::StrAppendFormat(
        &table, "%-8s %11.0f %8.2f %12s %12.3f %9s %9s %7s %7s %10.4f %9s %9s\n", r.name,
        r.samples_per_second, r.samples_per_second / results.front().samples_per_second,
        InMegabytes(r.counted_bytes), r.formula_bytes / 1e6, InMegabytes(r.state_bytes),
        InMegabytes(r.state_formula), Percent(r.bubble, 1), Percent(r.bubble_theory, 1),
        r.train_loss, OrDash(r.test_loss, absl::StrFormat("%.4f", r.test_loss)),
        Percent(r.test_accuracy, 2));
  }
  return table;
}

std::string FormatScaling(const std::vector<ScalingRow>& rows) {
  std::string table =
      absl::StrFormat("%5s %13s %10s %11s %17s %10s %11s\n", "ranks", "ddp samples/s", "MB/step",
                      "2(N-1)K/N", "threads samples/s", "MB/step", "2(N-1)K");
  for (const ScalingRow& row : rows) {
    const double whole = 2.0 * (row.ranks - 1) * row.ddp.model_bytes;
    absl::StrAppendFormat(&table, "%5d %13.0f %10s %11s %17.0f %10s %11s\n", row.ranks,
                          row.ddp.samples_per_second, InMegabytes(row.ddp.counted_bytes),
                          InMegabytes(whole / row.ranks), row.threads.samples_per_second,
                          InMegabytes(row.threads.counted_bytes), InMegabytes(whole));
  }
  return table;
}

absl::StatusOr<int> RunCompare(int argc, const char* const* argv, const Registry& registry,
                               std::ostream& out) {
  const absl::StatusOr<ComparisonOptions> compare = ParseCompare(argc, argv);
  if (!compare.ok()) return compare.status();
  if (!compare->help.empty()) {
    out << compare->help;
    return 0;
  }
  // Mistakes are found before anything is started.
  std::vector<const char*> training = {"muster-train"};
  for (const std::string& argument : compare->training) training.push_back(argument.c_str());
  const auto options = ParseOptions(static_cast<int>(training.size()), training.data(), registry,
                                    compare->own_flags);
  if (!options.ok()) return options.status();
  absl::Status shared = CheckTraining(*options);
  if (shared.ok()) {
    shared = CheckBatchSize(options->batch_size, std::max(compare->ranks, compare->scaling));
  }
  if (!shared.ok()) return shared;
  const absl::StatusOr<std::string> launcher = FindLauncher(compare->launcher);
  if (!launcher.ok()) return launcher.status();
  const ScratchDir scratch;
  if (!scratch.made()) return absl::UnavailableError("compare: no directory for temporary files");

  for (const std::string& name : compare->methods) {
    const int divides = FindMethod(name)->ranks_divide_by;
    if (compare->ranks % divides == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("compare: ", name, " needs a multiple of ",
                                                   divides, " ranks, and --ranks is ",
                                                   compare->ranks, "; take --ranks ", divides));
  }

  std::vector<MethodResult> results;
  for (const std::string& name : compare->methods) {
    out << "running " << name << "\n" << std::flush;
    const auto result = RunMethod(*FindMethod(name), *launcher, *compare, *options, scratch);
    if (!result.ok()) {
      if (!results.empty()) out << FormatComparison(results);
      return result.status();
    }
    results.push_back(*result);
  }
  out << FormatComparison(results)
      << "MB/step: sent by a rank, the mean of all, or in the whole process with threads, as "
         "counted; Gloo and "
         "NCCL do not count.\nformula: what is sent for K bytes among N = "
      << compare->ranks
      << ": 2(N-1)K/N by each rank, (N-1)K as bfloat16 over Gloo, 2(N-1)K with threads, 3(N-1)K/N "
         "with zero3; with tp, pp and 3d what the operations send.\n"
         "state: parameters, gradients and the optimizer's numbers on the rank that keeps most, "
         "with batches that wait, by the allocator; and by formula, without those.\n"
         "bubble: the share of a step that ranks of a pipeline wait, and what it is when each has "
         "a processor and equal work.\n";
  if (compare->scaling > 0) {
    const auto rows = RunScaling(*launcher, *compare, *options, scratch, out);
    if (!rows.ok()) return rows.status();
    out << FormatScaling(*rows);
  }
  return 0;
}

}  // namespace muster::trainer
