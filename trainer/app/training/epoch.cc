#include "trainer/app/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "trainer/app/training/evaluation.h"
#include "trainer/app/training/loop.h"
#include "trainer/data/batch_loader.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/optim/optimizer.h"
#include "trainer/runtime/flop_counter.h"
#include "trainer/worker/launcher_link.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kReportsPerEpoch = 20;

// One epoch in progress. Each rank steps by itself; periodically all ranks agree on the results,
// and only then is anything shown, written or decided.
class EpochRun {
 public:
  explicit EpochRun(Loop& loop)
      : loop_(loop),
        job_(loop.job),
        state_(loop.state),
        order_(state_.dataset_size, job_.options.seed, state_.epoch),
        began_at_(state_.position),
        steps_before_((began_at_ + state_.batch_size - 1) / state_.batch_size),
        beats_(job_.beats, loop_.trace.phases().clock(), job_.world.device().is_cpu(),
               StepBeats::Clock::now()) {}

  absl::StatusOr<EpochEnd> Run();

 private:
  struct StepTaken {
    std::int64_t step;
    StepResult result;
  };

  BatchPlan Plan() const;
  void TakeStep(const LoadedBatch& batch);
  bool Every(std::int64_t steps) const { return steps > 0 && state_.step % steps == 0; }
  bool stops() const { return job_.options.on_nonfinite == OnNonFinite::kStop; }
  bool skips() const { return job_.options.on_nonfinite == OnNonFinite::kSkip; }
  bool may_skip() const { return skips() || job_.options.scales_losses(); }
  // What the ranks tell one another: whether any of them...
  struct Agreement {
    bool stop = false;         // was told to stop
    bool saving = false;       // is still writing a checkpoint
    bool save_failed = false;  // could not write one
  };
  // kInvalidArgument if a loss is not finite and that must end the training; the steps before are
  // counted.
  absl::StatusOr<Agreement> Agree();
  void SaySkipped(const std::vector<std::int64_t>& steps);
  void Show();
  void Report();

  Loop& loop_;
  const Job& job_;
  TrainState& state_;
  const GlobalOrder order_;
  const std::int64_t began_at_;      // position
  const std::int64_t steps_before_;  // of this epoch, in earlier runs
  const Stopwatch since_start_;

  std::int64_t steps_ = 0;  // of this run in this epoch
  std::int64_t planned_ = 0;
  bool save_due_ = false;
  at::Tensor gradient_norm_;  // of the last step, when gradients are clipped
  double loss_scale_ = 1;     // of the last step
  StepBeats beats_;
  std::vector<StepTaken> since_agreed_;
  Stopwatch since_agreement_;
  Cadence cadence_;
  LossSum since_shown_;
};

// This rank's part of each remaining step, up to the limit.
BatchPlan EpochRun::Plan() const {
  const DataPlace place = loop_.strategy.place();
  BatchPlan plan = order_.From(state_.position, state_.batch_size, place.part, place.parts);
  if (job_.options.max_steps > 0) {
    const std::int64_t left = std::max<std::int64_t>(0, job_.options.max_steps - state_.step);
    plan.steps = std::min(plan.steps, left);
  }
  return plan;
}

absl::StatusOr<EpochEnd> EpochRun::Run() {
  BatchPlan plan = Plan();
  planned_ = plan.steps;
  const std::int64_t epoch_steps =
      (state_.dataset_size + state_.batch_size - 1) / state_.batch_size;
  const std::int64_t report_every = job_.options.report.every_steps > 0
                                        ? job_.options.report.every_steps
                                        : std::max<std::int64_t>(1, epoch_steps / kReportsPerEpoch);
  if (began_at_ == 0) state_.epoch_loss = {};
  BatchLoader loader(job_.data.train, std::move(plan),
                     {.epoch = state_.epoch,
                      .train = true,
                      .threads = job_.options.loader_threads,
                      .device = job_.world.device()});

  bool stop = false;
  while (!stop && steps_ < planned_) {
    loop_.trace.phases().Enter(Phase::kData);
    absl::StatusOr<std::optional<LoadedBatch>> batch = loader.Next();
    if (!batch.ok()) return batch.status();
    TakeStep(**batch);

    const bool last = steps_ == planned_;
    const bool report = Every(report_every) || last;
    const bool save = loop_.saver.saves() && Every(job_.options.checkpoint.every_steps);
    save_due_ |= save;
    if (!report && !save && static_cast<std::int64_t>(since_agreed_.size()) < cadence_.interval()) {
      continue;
    }
    absl::StatusOr<Agreement> agreed = Agree();
    if (agreed.ok() && job_.leads()) Show();
    if (agreed.ok() && report) Report();
    if (job_.leads()) {
      const absl::Status written = loop_.reporter->Flush();
      if (!written.ok()) return written;
    }
    if (!agreed.ok()) return agreed.status();
    stop = agreed->stop;
    if (agreed->save_failed) return loop_.saver.Finish(state_.step);
    if (loop_.saver.needs_index() && !agreed->saving) {
      const absl::Status indexed = loop_.saver.Index();
      if (!indexed.ok()) return indexed;
      agreed->saving = true;  // the index
    }
    // A slow disk means fewer checkpoints, not slower steps. After the last step another checkpoint
    // follows, when the epoch has been evaluated.
    if (save_due_ && !agreed->saving && !stop && !last) {
      save_due_ = false;
      const absl::StatusOr<bool> fit = FitToKeep(loop_);
      if (!fit.ok()) return fit.status();
      const absl::Status saved = *fit ? SaveCheckpoint(loop_) : absl::OkStatus();
      if (!saved.ok()) return saved;
    }
  }
  loop_.totals.seconds += since_start_.Seconds();
  loop_.totals.samples += state_.position - began_at_;
  if (stop) return EpochEnd::kStopped;
  return state_.position == state_.dataset_size ? EpochEnd::kWhole : EpochEnd::kLimit;
}

void EpochRun::TakeStep(const LoadedBatch& batch) {
  std::optional<FlopCounter> counter;
  if (state_.step == loop_.resumed_step + 1) counter.emplace();
  StepResult result = loop_.strategy.Step(batch, state_.step, loop_.learning_rate());
  if (counter) {
    loop_.totals.counted_samples = batch.plan.global;
    loop_.totals.counted_flops = counter->flops();
  }
  gradient_norm_ = result.gradient_norm;
  loss_scale_ = result.loss_scale;
  ++steps_;
  ++state_.step;
  state_.position = batch.plan.end_position;
  beats_.OnStep(state_.step, batch.plan.own, StepBeats::Clock::now());
  since_agreed_.push_back({state_.step, std::move(result)});
  loop_.trace.OnStep();
}

absl::StatusOr<EpochRun::Agreement> EpochRun::Agree() {
  const std::vector<StepTaken> taken = std::exchange(since_agreed_, {});
  std::vector<at::Tensor> losses;
  for (const StepTaken& step : taken) losses.push_back(step.result.loss);
  const std::vector<double> mine = ReadNumbers(losses);
  std::vector<double> values = mine;
  values.push_back(StopSignal() != 0 ? 1 : 0);
  values.push_back(loop_.saver.busy() ? 1 : 0);
  values.push_back(loop_.saver.failed() ? 1 : 0);
  values.push_back(since_agreement_.Seconds() / static_cast<double>(taken.size()));
  const std::size_t first_skip = values.size();
  for (const StepTaken& step : taken) {
    if (may_skip()) values.push_back(step.result.skipped ? 1 : 0);
  }
  const std::vector<double> sums = job_.group().Sum(values);
  since_agreement_.Restart();
  cadence_.OnAgreed(sums[first_skip - 1] / job_.env.world_size);

  // Step by step, so that the sums do not depend on when the ranks agree.
  std::vector<std::int64_t> skipped;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const LossSum all = {sums[i], static_cast<double>(taken[i].result.predictions)};
    const bool finite = std::isfinite(all.mean());
    beats_.OnLoss(all.mean());
    if (job_.leads()) loop_.reporter->StepLoss(taken[i].step, all.mean());
    if (!finite && stops()) {
      return NonFiniteLoss(loop_, taken[i].step, WordOnLoss(mine[i], taken[i].result.not_finite));
    }
    if (may_skip() && sums[first_skip + i] > 0) skipped.push_back(taken[i].step);
    // An epoch's mean only includes steps with a finite loss.
    if (!finite && skips()) continue;
    state_.epoch_loss += all;
    state_.report_loss += all;
    since_shown_ += all;
  }
  SaySkipped(skipped);
  const double* const flags = &sums[taken.size()];
  return Agreement{flags[0] > 0, flags[1] > 0, flags[2] > 0};
}

void EpochRun::SaySkipped(const std::vector<std::int64_t>& steps) {
  if (steps.empty()) return;
  loop_.totals.skipped_steps += static_cast<std::int64_t>(steps.size());
  if (!job_.leads()) return;
  job_.progress.Say(
      steps.size() == 1
          ? absl::StrCat("step ", steps[0], " is skipped: its gradient is NaN or infinite")
          : absl::StrCat(steps.size(), " steps from ", steps.front(), " to ", steps.back(),
                         " are skipped: their gradients are NaN or infinite"));
}

void EpochRun::Show() {
  const double seconds = since_start_.Seconds();
  const bool shown = job_.progress.Show(
      {.epoch = static_cast<int>(state_.epoch) + 1,
       .epochs = job_.options.epochs,
       .step = steps_before_ + steps_,
       .steps = steps_before_ + planned_,
       .loss = since_shown_.mean(),
       .samples_per_second = static_cast<double>(state_.position - began_at_) / seconds,
       .unit = job_.unit(),
       .seconds_left = seconds / static_cast<double>(steps_) *
                       static_cast<double>(loop_.schedule.total_steps - state_.step)});
  if (shown) since_shown_ = {};
}

void EpochRun::Report() {
  const LossSum loss = std::exchange(state_.report_loss, {});
  if (!job_.leads()) return;
  const double samples_per_second =
      static_cast<double>(state_.position - began_at_) / since_start_.Seconds();
  Scalars scalars = {.step = state_.step, .unix_seconds = UnixSeconds(), .values = {}};
  scalars.values = {
      {"epoch", static_cast<double>(state_.epoch) +
                    static_cast<double>(state_.position) / static_cast<double>(order_.size())},
      {"train/loss", loss.mean()},
      {"train/learning_rate", LearningRateAt(loop_.schedule, state_.step - 1)},
      {"train/samples_per_second", samples_per_second}};
  if (const std::int64_t tokens = job_.data.train->shape().context; tokens > 0) {
    scalars.values.emplace_back("train/tokens_per_second",
                                samples_per_second * static_cast<double>(tokens));
  }
  if (gradient_norm_.defined()) {
    scalars.values.emplace_back("train/gradient_norm", ReadNumbers({gradient_norm_})[0]);
  }
  if (job_.options.scales_losses()) scalars.values.emplace_back("train/loss_scale", loss_scale_);
  if (may_skip()) {
    scalars.values.emplace_back("train/skipped_steps",
                                static_cast<double>(loop_.totals.skipped_steps));
  }
  loop_.reporter->Report(scalars);
}

}  // namespace

absl::StatusOr<EpochEnd> TrainEpoch(Loop& loop) {
  loop.strategy.BeginEpoch(loop.state.epoch);
  return EpochRun(loop).Run();
}

}  // namespace muster::trainer
