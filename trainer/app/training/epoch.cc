#include "trainer/app/training/epoch.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "trainer/app/training/cadence.h"
#include "trainer/app/training/finiteness.h"
#include "trainer/app/training/saving.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/data/loading/global_order.h"
#include "trainer/optim/clip.h"
#include "trainer/optim/schedule.h"
#include "trainer/worker/stop_signal.h"

namespace muster::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kReportsPerEpoch = 20;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One epoch under way. The steps are each rank's own; now and then all ranks agree on what became
// of them, and only then is anything shown, written or decided.
class EpochRun {
 public:
  explicit EpochRun(Session& session)
      : s_(session),
        order_(session.state.dataset_size, session.options.seed, session.state.epoch),
        began_at_(session.state.position),
        steps_before_((began_at_ + session.state.batch_size - 1) / session.state.batch_size),
        start_(Clock::now()),
        agreed_(start_) {
    if (skips()) guard_.emplace(session);
  }

  absl::StatusOr<EpochEnd> Run();

 private:
  struct StepTaken {
    std::int64_t step;
    LossSum mine;      // with the predictions of all ranks
    std::string word;  // of this rank, on its loss
    bool skipped = false;
  };

  BatchPlan Plan() const;
  void TakeStep(const LoadedBatch& batch);
  bool Every(std::int64_t steps) const { return steps > 0 && s_.state.step % steps == 0; }
  bool stops() const { return s_.options.on_nonfinite == OnNonFinite::kStop; }
  bool skips() const { return s_.options.on_nonfinite == OnNonFinite::kSkip; }
  // What ranks tell one another: whether any of them...
  struct Agreement {
    bool stop = false;         // was told to stop
    bool saving = false;       // is still writing a checkpoint
    bool save_failed = false;  // could not write one
  };
  // kInvalidArgument when a loss is not finite and the training is to end then; what came before it
  // is counted.
  absl::StatusOr<Agreement> Agree();
  void SaySkipped(const std::vector<std::int64_t>& steps);
  void Show();
  void Report();

  Session& s_;
  const GlobalOrder order_;
  const std::int64_t began_at_;      // position
  const std::int64_t steps_before_;  // of this epoch, in earlier runs
  const Clock::time_point start_;

  std::int64_t steps_ = 0;  // of this run in this epoch
  std::int64_t planned_ = 0;
  bool save_due_ = false;
  double gradient_norm_ = 0;  // of the last step, when gradients are clipped
  std::optional<StepGuard> guard_;
  std::vector<StepTaken> since_agreed_;
  Clock::time_point agreed_;
  Cadence cadence_;
  LossSum since_shown_;
};

// This rank's part of each step that is left, until the limit.
BatchPlan EpochRun::Plan() const {
  BatchPlan plan =
      order_.From(s_.state.position, s_.state.batch_size, s_.env.rank, s_.env.world_size);
  if (s_.options.max_steps > 0) {
    const std::int64_t left = std::max<std::int64_t>(0, s_.options.max_steps - s_.state.step);
    plan.steps = std::min(plan.steps, left);
  }
  return plan;
}

absl::StatusOr<EpochEnd> EpochRun::Run() {
  BatchPlan plan = Plan();
  planned_ = plan.steps;
  const std::int64_t epoch_steps =
      (s_.state.dataset_size + s_.state.batch_size - 1) / s_.state.batch_size;
  const std::int64_t report_every = s_.options.report.every_steps > 0
                                        ? s_.options.report.every_steps
                                        : std::max<std::int64_t>(1, epoch_steps / kReportsPerEpoch);
  s_.model->SetTraining(true);
  if (began_at_ == 0) s_.state.epoch_loss = {};
  BatchLoader loader(
      s_.data.train, std::move(plan),
      {.epoch = s_.state.epoch, .train = true, .threads = s_.options.loader_threads});

  bool stop = false;
  while (!stop && steps_ < planned_) {
    s_.phases.Enter(Phase::kData);
    absl::StatusOr<std::optional<LoadedBatch>> batch = loader.Next();
    if (!batch.ok()) return batch.status();
    TakeStep(**batch);

    const bool last = steps_ == planned_;
    const bool report = Every(report_every) || last;
    const bool save = !s_.owners.empty() && Every(s_.options.checkpoint.every_steps);
    save_due_ |= save;
    if (!report && !save && static_cast<std::int64_t>(since_agreed_.size()) < cadence_.interval()) {
      continue;
    }
    absl::StatusOr<Agreement> agreed = Agree();
    if (agreed.ok() && s_.leads()) Show();
    if (agreed.ok() && report) Report();
    if (s_.leads()) {
      const absl::Status written = s_.reporter->Flush();
      if (!written.ok()) return written;
    }
    if (!agreed.ok()) return agreed.status();
    stop = agreed->stop;
    if (agreed->save_failed) return FinishSaving(s_);
    if (s_.shards_open && !agreed->saving) {
      const absl::Status indexed = IndexShards(s_);
      if (!indexed.ok()) return indexed;
      agreed->saving = true;  // the index
    }
    // A disk that is too slow makes checkpoints fewer, not steps slower. After the last step
    // another one follows, when the epoch has been evaluated.
    if (save_due_ && !agreed->saving && !stop && !last) {
      save_due_ = false;
      const absl::StatusOr<bool> fit = FitToKeep(s_);
      if (!fit.ok()) return fit.status();
      const absl::Status saved = *fit ? SaveCheckpoint(s_) : absl::OkStatus();
      if (!saved.ok()) return saved;
    }
  }
  s_.train_seconds += SecondsSince(start_);
  s_.trained_samples += s_.state.position - began_at_;
  if (stop) return EpochEnd::kStopped;
  return s_.state.position == s_.state.dataset_size ? EpochEnd::kWhole : EpochEnd::kLimit;
}

void EpochRun::TakeStep(const LoadedBatch& batch) {
  for (const NamedTensor& parameter : s_.parameters) parameter.tensor.mutable_grad().reset();
  if (guard_) guard_->BeforeStep();
  const double loss = s_.strategy->ForwardBackward(batch, s_.state.step);
  const std::string word = stops() ? WordOnLoss(loss, s_.parameters) : "";
  s_.phases.Enter(Phase::kOptimizer);
  if (s_.options.clip_norm > 0) {
    gradient_norm_ = ClipGradientNorm(s_.parameters, s_.options.clip_norm);
  }
  const bool skipped = guard_ && !guard_->Allows(gradient_norm_);
  if (!skipped) s_.optimizer->Step(LearningRateAt(s_.options.schedule, s_.state.step));
  if (s_.ema && !skipped) s_.ema->Update();
  s_.strategy->AfterStep();
  s_.phases.Enter(Phase::kOther);

  ++steps_;
  ++s_.state.step;
  s_.state.position = batch.plan.end_position;
  s_.beats.Send(s_.state.step);
  const std::int64_t predictions = batch.plan.global * PredictionsPerSample(batch.data);
  since_agreed_.push_back({s_.state.step, {loss, static_cast<double>(predictions)}, word, skipped});
  if (s_.recorder && s_.state.step - s_.resumed_step == s_.options.report.trace_steps) {
    s_.recorder.reset();
    s_.phases.RecordTo(nullptr);
  }
}

absl::StatusOr<EpochRun::Agreement> EpochRun::Agree() {
  const std::vector<StepTaken> taken = std::exchange(since_agreed_, {});
  std::vector<double> values;
  for (const StepTaken& step : taken) values.push_back(step.mine.loss);
  values.push_back(StopSignal() != 0 ? 1 : 0);
  values.push_back(s_.writer && s_.writer->busy() ? 1 : 0);
  values.push_back(s_.writer && !s_.writer->status().ok() ? 1 : 0);
  values.push_back(SecondsSince(agreed_) / static_cast<double>(taken.size()));
  const std::size_t first_skip = values.size();
  for (const StepTaken& step : taken) {
    if (skips()) values.push_back(step.skipped ? 1 : 0);
  }
  const std::vector<double> sums = s_.group.Sum(values);
  agreed_ = Clock::now();
  cadence_.OnAgreed(sums[first_skip - 1] / s_.env.world_size);

  // Step by step, so that the sums do not depend on when the ranks agree.
  std::vector<std::int64_t> skipped;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const LossSum all = {sums[i], taken[i].mine.predictions};
    const bool finite = std::isfinite(all.loss);
    if (s_.leads()) s_.reporter->StepLoss(taken[i].step, all.mean());
    if (!finite && stops()) return NonFiniteLoss(s_, taken[i].step, taken[i].word);
    if (skips() && sums[first_skip + i] > 0) skipped.push_back(taken[i].step);
    // The mean of an epoch is one of steps that have a loss.
    if (!finite && skips()) continue;
    s_.state.epoch_loss += all;
    s_.state.report_loss += all;
    since_shown_ += all;
  }
  SaySkipped(skipped);
  const double* const flags = &sums[taken.size()];
  return Agreement{flags[0] > 0, flags[1] > 0, flags[2] > 0};
}

void EpochRun::SaySkipped(const std::vector<std::int64_t>& steps) {
  if (steps.empty()) return;
  s_.skipped_steps += static_cast<std::int64_t>(steps.size());
  if (!s_.leads()) return;
  s_.progress.Say(
      steps.size() == 1
          ? absl::StrCat("step ", steps[0], " is skipped: its gradient is NaN or infinite")
          : absl::StrCat(steps.size(), " steps from ", steps.front(), " to ", steps.back(),
                         " are skipped: their gradients are NaN or infinite"));
}

void EpochRun::Show() {
  const double seconds = SecondsSince(start_);
  const bool shown = s_.progress.Show(
      {.epoch = static_cast<int>(s_.state.epoch) + 1,
       .epochs = s_.options.epochs,
       .step = steps_before_ + steps_,
       .steps = steps_before_ + planned_,
       .loss = since_shown_.mean(),
       .samples_per_second = static_cast<double>(s_.state.position - began_at_) / seconds,
       .unit = s_.unit(),
       .seconds_left = seconds / static_cast<double>(steps_) *
                       static_cast<double>(s_.total_steps - s_.state.step)});
  if (shown) since_shown_ = {};
}

void EpochRun::Report() {
  const LossSum loss = std::exchange(s_.state.report_loss, {});
  if (!s_.leads()) return;
  const double samples_per_second =
      static_cast<double>(s_.state.position - began_at_) / SecondsSince(start_);
  Scalars scalars = {.step = s_.state.step, .unix_seconds = UnixSeconds(), .values = {}};
  scalars.values = {
      {"epoch", static_cast<double>(s_.state.epoch) +
                    static_cast<double>(s_.state.position) / static_cast<double>(order_.size())},
      {"train/loss", loss.mean()},
      {"train/learning_rate", LearningRateAt(s_.options.schedule, s_.state.step - 1)},
      {"train/samples_per_second", samples_per_second}};
  if (const std::int64_t tokens = s_.data.train->shape().context; tokens > 0) {
    scalars.values.emplace_back("train/tokens_per_second",
                                samples_per_second * static_cast<double>(tokens));
  }
  if (s_.options.clip_norm > 0) scalars.values.emplace_back("train/gradient_norm", gradient_norm_);
  if (skips()) {
    scalars.values.emplace_back("train/skipped_steps", static_cast<double>(s_.skipped_steps));
  }
  s_.reporter->Report(scalars);
}

}  // namespace

absl::StatusOr<EpochEnd> TrainEpoch(Session& session) {
  return EpochRun(session).Run();
}

}  // namespace muster::trainer
