#include "trainer/app/run.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/signal_names.h"

#include "trainer/app/reports/start_up.h"
#include "trainer/app/strategies/chosen_model.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/loop.h"
#include "trainer/app/training/rank_comparison.h"
#include "trainer/app/training/start.h"
#include "trainer/app/training/trainer.h"
#include "trainer/compat/tensor_memory.h"
#include "trainer/data/data_recipe.h"
#include "trainer/io/durable_file.h"
#include "trainer/worker/blas_probe.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/process_setup.h"
#include "trainer/worker/stop_signal.h"

namespace muster::trainer {
namespace {

// Two results in one file would be none.
absl::Status CheckDistinct(const Options& options) {
  const std::pair<const char*, std::string> outputs[] = {
      {"--checkpoint", options.checkpoint.final_path},
      {"--export", options.checkpoint.export_path},
      {"--loss-log", options.report.loss_log},
      {"--metrics", options.report.metrics},
      {"--trace", options.report.trace},
  };
  std::map<std::string, const char*> flags;  // by where their paths lead
  for (const auto& [flag, path] : outputs) {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::weakly_canonical(path, error);
    if (path.empty() || error || std::filesystem::is_other(place, error)) continue;
    const auto [other, is_new] = flags.emplace(place.string(), flag);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("write ", path, ": ", other->second, " and ", flag,
                     " name the same file; give each a path of its own"));
  }
  return absl::OkStatus();
}

// Finds out before the training rather than after it that its results could not be written.
absl::Status CheckOutputs(const Options& options) {
  const absl::Status distinct = CheckDistinct(options);
  if (!distinct.ok()) return distinct;
  for (const std::string& path : {options.checkpoint.final_path, options.checkpoint.export_path}) {
    if (path.empty()) continue;
    const auto file = DurableFile::Create(path);
    if (!file.ok()) return file.status();
  }
  for (const std::string& path :
       {options.report.loss_log, options.report.metrics, options.report.trace}) {
    // Opened for appending: what is there may be a part of a run that is to go on.
    if (path.empty() || std::ofstream(path, std::ios::app)) continue;
    return absl::InvalidArgumentError(absl::StrCat("write ", path, ": cannot be opened"));
  }
  return absl::OkStatus();
}

// What `make` returns, or what it throws as a status: "`attempt`: ...".
template <typename Make>
auto Attempt(const char* attempt, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    // Gloo's words for a connection that ended.
    const bool lost = absl::StrContains(error.what(), "by peer");
    return FailureOf(absl::StrCat(attempt, lost ? ": another rank is gone" : ""), error);
  } catch (...) {
    return FailureNow(attempt);
  }
}

}  // namespace

absl::StatusOr<Splits> PrepareRank(const Options& options, const Environment& env,
                                   Progress& progress) {
  EndOnStopSignals();
  compat::CountTensorMemory();
  const absl::Status suited = CheckWorld(options, env.world_size);
  if (!suited.ok()) return suited;
  const int threads = options.threads > 0 ? options.threads : DefaultThreads(env.local_world_size);
  if (env.rank == 0) {
    const absl::Status writable = CheckOutputs(options);
    if (!writable.ok()) return writable;
    const double gflops = MeasureMatmulGflops();
    progress.Say(StartLine(options, env, threads, gflops));
    if (const auto file = LoadedReferenceBlas()) {
      std::cerr << absl::StrCat(options.program, ": warning: ", ReferenceBlasWarning(*file, gflops),
                                "\n");
    }
  }
  SetThreads(threads);
  SetPrecision(options.tf32, options.deterministic);
  try {
    return OpenData(options.data_set, options.data);
  } catch (...) {
    return FailureNow("");
  }
}

absl::StatusOr<int> RunRank(const Options& given, const Environment& env, Splits data,
                            Progress& progress) {
  const bool leads = env.rank == 0;
  Options options = given;
  options.shape = data.train->shape();

  // World and strategy are left to the end of the process when something fails: see the header.
  auto joined = World::Join(env, options.parallel.comm, options.parallel.timeout);
  if (!joined.ok()) return joined.status();
  World* const world = joined->release();
  if (leads) progress.Say(JoinedLine(*world));
  BeatSender beats(env.beat_socket, env.rank);
  beats.Send(0);
  absl::Status status = Attempt("compare the ranks", [&] {
    return CheckRanksAlike(FactsOf(options.settings, data), world->all());
  });
  if (!status.ok()) return status;

  auto model = Attempt("make the model", [&] { return MakeChosenModel(options, world->device()); });
  status = Attempt("compare the models", [&] { return CheckModelsAlike(model, world->all()); });
  if (!status.ok()) return status;
  StepTrace trace;
  if (options.report.profile || !options.report.trace.empty()) {
    trace.phases().WaitFor(world->device());
  }
  auto made = Attempt("prepare the training", [&] {
    return MakeStrategy(options, *std::move(model), *world, trace.phases());
  });
  if (!made.ok()) return made.status();
  Strategy* const strategy = made->release();

  const Job job = {options, env, data, *world, progress, beats};
  auto start = Attempt("find where to start", [&] { return FindStart(job, *strategy); });
  if (!start.ok()) return start.status();
  const TrainState state = start->state;
  options.schedule.total_steps = std::max<std::int64_t>(1, TotalSteps(options, state));
  status = CheckSchedule(options.schedule);
  if (!status.ok()) return status;
  status = Attempt("share the parameters", [&] {
    strategy->Begin();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;

  for (const std::string& line : strategy->StartLines()) {
    if (leads) progress.Say(line);
  }

  std::unique_ptr<Reporter> reporter;
  status = Attempt("open the log files", [&] {
    absl::Status mine;
    if (leads) {
      auto opened = Reporter::Open(options.report, state.step);
      mine = opened.status();
      if (opened.ok()) reporter = *std::move(opened);
    }
    return FirstFailure(mine, world->all());
  });
  if (!status.ok()) return status;
  Saver saver(job, *std::move(start));
  if (!options.report.trace.empty()) trace.Record(options.report.trace_steps);
  RememberStopSignals();
  Loop loop = {.job = job,
               .strategy = *strategy,
               .saver = saver,
               .reporter = reporter.get(),
               .trace = trace,
               .resumed_step = state.step,
               .schedule = options.schedule,
               .state = state};
  const absl::StatusOr<Summary> summary = Train(loop);
  if (!summary.ok()) return summary.status();
  delete strategy;
  delete world;

  const bool stopped = summary->stop_signal != 0;
  if (leads && stopped) {
    progress.Say(absl::StrCat(
        "stopped by ", base::SignalName(summary->stop_signal), " after step ", summary->steps, "; ",
        summary->checkpoint.empty() ? "nothing is saved: there is no --checkpoint-dir"
                                    : absl::StrCat("checkpoint ", summary->checkpoint)));
  } else if (leads) {
    std::cout << FormatSummary(*summary) << std::flush;
  }
  return stopped ? StopExitCode(summary->stop_signal) : 0;
}

}  // namespace muster::trainer
