#include "trainer/app/run.h"

#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/signal_names.h"

#include "trainer/app/reports/start_up.h"
#include "trainer/app/training/session.h"
#include "trainer/app/training/trainer.h"
#include "trainer/io/durable_file.h"
#include "trainer/worker/blas_probe.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/process_setup.h"
#include "trainer/worker/stop_signal.h"

namespace muster::trainer {
namespace {

// Finds out before the training rather than after it that its results could not be written.
absl::Status CheckOutputs(const Options& options) {
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

// The session, or why there is none; never throws.
absl::StatusOr<std::unique_ptr<Session>> MakeSession(const Options& options, const Environment& env,
                                                     Splits data, World& world,
                                                     Progress& progress) {
  try {
    return Session::Make(options, env, std::move(data), world, progress);
  } catch (const std::exception& error) {
    return FailureOf("give all ranks the same model", error);
  }
}

}  // namespace

absl::StatusOr<Splits> PrepareRank(const Options& options, const Environment& env,
                                   Progress& progress) {
  EndOnStopSignals();
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
  return options.data_set.open(options.data);
}

absl::StatusOr<int> RunRank(const Options& options, const Environment& env, Splits data,
                            Progress& progress) {
  const bool leads = env.rank == 0;
  // Left to the end of the process when something fails: see the header.
  auto joined = World::Join(env, options.parallel.comm, options.parallel.timeout);
  if (!joined.ok()) return joined.status();
  World* world = joined->release();
  if (leads) progress.Say(JoinedLine(*world));
  auto made = MakeSession(options, env, std::move(data), *world, progress);
  if (!made.ok()) return made.status();
  Session* session = made->release();
  RememberStopSignals();
  const absl::StatusOr<Summary> summary = Train(*session);
  if (!summary.ok()) return summary.status();
  delete session;
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
