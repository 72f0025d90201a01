#include "trainer/app/training/session.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/app/options/config_file.h"
#include "trainer/app/training/batch.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/checkpoint_owners.h"
#include "trainer/app/strategies/chosen_model.h"
#include "trainer/app/training/rank_comparison.h"
#include "trainer/app/training/resume.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/compat/torch_version.h"
#include "trainer/io/durable_file.h"
#include "trainer/optim/schedule.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostTraceEvents = 500'000;  // about 60 MB

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

BatchRequest BatchWanted(const Options& options, const Environment& env) {
  return {options.batch_size, env.world_size, options.checkpoint.on_resize};
}

// Writes the options beside the checkpoints, for whoever wants such a run again.
absl::Status WriteConfig(const Options& options) {
  const auto file = DurableFile::Create(absl::StrCat(options.checkpoint.directory, "/config.toml"));
  if (!file.ok()) return file.status();
  const absl::Status written = (*file)->Append(ConfigText(options.settings));
  return written.ok() ? (*file)->Commit() : written;
}

// How many steps will have been done when the training ends.
std::int64_t TotalSteps(const Options& options, const TrainState& state) {
  std::int64_t total = state.step;
  if (state.epoch < options.epochs) {
    const std::int64_t left = state.dataset_size - state.position;
    total += CeilDiv(left, state.batch_size) +
             (options.epochs - state.epoch - 1) * CeilDiv(state.dataset_size, state.batch_size);
  }
  return options.max_steps > 0 ? std::min(total, std::max(options.max_steps, state.step)) : total;
}

}  // namespace

Session::Session(const Options& options, const Environment& env, Splits data, World& world,
                 Progress& progress)
    : options(options),
      env(env),
      data(std::move(data)),
      world(world),
      group(world.all()),
      progress(progress),
      beats(env.beat_socket, env.rank),
      trace(kMostTraceEvents) {}

const char* Session::unit() const {
  return SampleUnit(data.train->shape().kind);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Make(const Options& options,
                                                       const Environment& env, Splits data,
                                                       World& world, Progress& progress) {
  auto session = std::make_unique<Session>(options, env, std::move(data), world, progress);
  absl::Status status = session->MakeParts();
  if (!status.ok()) return status;
  return session;
}

absl::Status Session::MakeParts() {
  beats.Send(0);
  absl::Status status = CheckRanksAlike(FactsOf(options.settings, data), group);
  if (!status.ok()) return status;
  options.shape = data.train->shape();
  auto made = MakeChosenModel(options, group.device());
  if (!made.ok()) return made.status();
  model = *std::move(made);
  parameters = model->Parameters();
  options.optimizer.interpolate_mean = compat::kAdamWInterpolatesMean;
  options.optimizer.root_is_power = compat::kAdamWRootIsPower;
  auto made_optimizer = MakeOptimizer(options.optimizer, parameters);
  if (!made_optimizer.ok()) return made_optimizer.status();
  optimizer = *std::move(made_optimizer);

  if (options.ema_decay > 0) ema = std::make_unique<Ema>(parameters, options.ema_decay);
  state.seed = options.seed;
  state.dataset_size = data.train->size();
  status = GoOnOrInit();
  if (!status.ok()) return status;
  resumed_step = state.step;
  total_steps = TotalSteps(options, state);
  options.schedule.total_steps = std::max<std::int64_t>(1, total_steps);
  status = CheckSchedule(options.schedule);
  if (!status.ok()) return status;

  strategy = MakeStrategy({options, *model, group, phases, state.gradient_order});
  // Until now only rank 0 had the parameters of --init-from.
  if (ema && resumed_step == 0) ema->Restart();
  if (leads()) {
    auto opened = Reporter::Open(options.report, resumed_step);
    if (opened.ok()) reporter = *std::move(opened);
    status = opened.status();
  }
  status = FirstFailure(status, group);
  if (!status.ok()) return status;
  if (!options.report.trace.empty()) {
    recorder = std::make_unique<TraceRecorder>(trace);
    phases.RecordTo(&trace);
  }
  return absl::OkStatus();
}

// Takes the state of a checkpoint, or else the first parameters that were asked for.
absl::Status Session::GoOnOrInit() {
  auto found = FindCheckpointOwners(options.checkpoint, env.local_rank, group);
  if (!found.ok()) return found.status();
  const auto point = FindResumePoint(options.checkpoint, env, *found, group);
  if (!point.ok()) return point.status();
  for (const std::string& warning : point->warnings) {
    if (leads()) progress.Say(absl::StrCat("warning: ", warning));
  }
  if (point->checkpoint) {
    const Resumable& resumable = *point->checkpoint;
    const auto sentences =
        PutBack(resumable.snapshot, options, {*model, *optimizer, state, ema.get()});
    if (!sentences.ok()) {
      return absl::Status(
          sentences.status().code(),
          absl::StrCat("resume from ", resumable.place, ": ", sentences.status().message()));
    }
    if (leads()) {
      progress.Say(absl::StrCat("resuming from ", resumable.place, ": step ", state.step,
                                ", epoch ", state.epoch + 1, ", ", state.position, " of ",
                                state.dataset_size, " ", unit()));
      for (const std::string& sentence : *sentences) progress.Say(sentence);
    }
    beats.Send(state.step);
    const absl::Status status = TakeOverDirectory(*std::move(found), *point);
    return status.ok() ? GoOnWithBatch() : status;
  }
  const auto loaded =
      FromRankZero(leads() ? InitFrom(options.checkpoint, *model) : std::string(), group);
  if (!loaded.ok()) return loaded.status();
  if (leads() && !loaded->empty()) progress.Say(*loaded);
  const absl::Status status = TakeOverDirectory(*std::move(found), *point);
  return status.ok() ? BeginBatch(BatchWanted(options, env), &state) : status;
}

// Says in this rank's directory, if it has one, where this job starts: whoever restarts it then
// knows what is its own.
absl::Status Session::TakeOverDirectory(CheckpointOwners from, const ResumePoint& point) {
  owners = std::move(from.ranks);
  team = std::move(from.team);
  kept_step = point.kept_step;
  if (!point.checkpoint || point.kept_everywhere) saved_step = state.step;
  absl::Status status;
  if (from.directory && team[0] == env.rank) {
    const CheckpointDirectory::Latest latest = {point.kept_step, point.job};
    if (from.directory->ReadLatest() != latest) status = from.directory->WriteLatest(latest);
    if (status.ok()) status = WriteConfig(options);
  }
  if (from.directory) {
    writer = std::make_unique<CheckpointWriter>(*std::move(from.directory), point.job);
  }
  return FirstFailure(status, group);
}

absl::Status Session::GoOnWithBatch() {
  const TrainState before = state;
  const absl::Status status = ResumeBatch(BatchWanted(options, env), &state);
  if (!status.ok() || !leads()) return status;
  if (before.world_size != env.world_size) {
    progress.Say(absl::StrCat("the world had ", before.world_size, " ranks and has ",
                              env.world_size, ": steps of ", state.batch_size, " ", unit()));
  } else if (state.batch_size != options.batch_size) {
    progress.Say(absl::StrCat("steps of ", state.batch_size, " ", unit(),
                              ", as in the checkpoint, not of --batch-size ", options.batch_size));
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
