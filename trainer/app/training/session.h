// Everything one rank trains with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/reports/progress.h"
#include "trainer/app/reports/reporter.h"
#include "trainer/app/training/checkpoint_writer.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/train_state.h"
#include "trainer/comm/group.h"
#include "trainer/comm/world.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"
#include "trainer/optim/ema.h"
#include "trainer/optim/optimizer.h"
#include "trainer/telemetry/phase_tracker.h"
#include "trainer/telemetry/trace_file.h"
#include "trainer/telemetry/trace_recorder.h"
#include "trainer/worker/beat.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

struct CheckpointOwners;
struct ResumePoint;

// The parts, in the order in which they depend on one another. They are the same on every rank,
// except for those that depend on its number and those that only some ranks have. One thread.
struct Session {
  // Creates the model, the same on every rank, and restores a checkpoint if there is one to resume
  // from. `world` and `progress` must outlive the session. kInvalidArgument when model, data and
  // checkpoint do not fit together, or, on rank 0 alone, when a file cannot be opened for writing.
  // kUnavailable when reading or writing a file fails. Throws what c10d throws.
  static absl::StatusOr<std::unique_ptr<Session>> Make(const Options& options,
                                                       const Environment& env, Splits data,
                                                       World& world, Progress& progress);

  Session(const Options& options, const Environment& env, Splits data, World& world,
          Progress& progress);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool leads() const { return env.rank == 0; }
  // What a sample is called: "images" or "windows".
  const char* unit() const;
  // Whether --max-steps is set and reached.
  bool limit_reached() const { return options.max_steps > 0 && state.step >= options.max_steps; }
  // Whether --early-stop ends the training: no test has been better for long enough.
  bool stalled() const {
    return options.early_stop > 0 && state.best.tests_since >= options.early_stop;
  }

  Options options;  // with the values that the data determines filled in
  const Environment env;
  const Splits data;
  World& world;
  Group& group;  // of all ranks
  Progress& progress;
  BeatSender beats;

  TraceBuffer trace;
  std::unique_ptr<TraceRecorder> recorder;  // while steps are traced
  PhaseTracker phases;

  std::unique_ptr<Model> model;
  std::vector<NamedTensor> parameters;  // the model's
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Ema> ema;  // null without --ema
  std::unique_ptr<Strategy> strategy;
  TrainState state;
  std::int64_t resumed_step = 0;
  std::int64_t total_steps = 0;  // at the end of the training

  std::vector<int> owners;                   // the ranks that save checkpoints
  std::vector<int> team;                     // see CheckpointOwners
  std::unique_ptr<CheckpointWriter> writer;  // if this rank writes any
  std::int64_t saved_step = -1;              // of the newest that all of them have or are writing
  std::optional<std::int64_t> kept_step;     // of the one that this rank's team had at the start
  bool shards_open = false;                  // shards are being written and have no index yet
  std::unique_ptr<Reporter> reporter;        // on rank 0

  // Of this run, to compute the speed.
  double train_seconds = 0;
  std::int64_t trained_samples = 0;  // over all ranks
  std::int64_t skipped_steps = 0;    // whose gradient was not finite

 private:
  absl::Status MakeParts();
  absl::Status GoOnOrInit();
  absl::Status TakeOverDirectory(CheckpointOwners from, const ResumePoint& point);
  absl::Status GoOnWithBatch();
};

}  // namespace muster::trainer
