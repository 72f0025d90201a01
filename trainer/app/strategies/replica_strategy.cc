#include "trainer/app/strategies/replica_strategy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <utility>

#include "trainer/app/strategies/strategy.h"
#include "trainer/io/state_dict.h"
#include "trainer/models/autocast.h"
#include "trainer/optim/gradients.h"
#include "trainer/optim/optimizer.h"

namespace muster::trainer {
namespace {

constexpr double kFirstScale = 65536;  // torch.cuda.amp.GradScaler's

Value ScalerValue(const LossScaler& scaler) {
  Dict dict;
  dict.Set("scale", scaler.scale());
  dict.Set("growth_factor", 2.0);
  dict.Set("backoff_factor", 0.5);
  dict.Set("growth_interval", scaler.window());
  dict.Set("_growth_tracker", scaler.state().steps_since);
  return dict;
}

absl::StatusOr<LossScaler::State> ReadScaler(const Value& value) {
  const absl::StatusOr<double> scale = value.GetFloat("scale");
  const absl::StatusOr<std::int64_t> steps = value.GetInt("_growth_tracker");
  if (!scale.ok() || !steps.ok() || !(*scale > 0) || std::isinf(*scale) || *steps < 0) {
    return absl::InvalidArgumentError("its loss scaler's state is invalid");
  }
  return LossScaler::State{*scale, *steps};
}

// The sum of the losses of the first `count` samples. That nothing is cut off where all count is an
// operation less on the way back, too.
at::Tensor LossOfFirst(const Objective& objective, const at::Tensor& scores, const Batch& batch,
                       std::int64_t count) {
  if (count == scores.size(0)) return objective.LossOf(scores, batch.targets, batch.others);
  const Batch first = BatchRows(batch, 0, count);
  return objective.LossOf(scores.narrow(0, 0, count), first.targets, first.others);
}

// `state` with the averages of `parameters` instead of them, under whichever names they have.
std::vector<NamedTensor> WithAverages(std::vector<NamedTensor> state,
                                      const std::vector<NamedTensor>& parameters,
                                      const std::vector<NamedTensor>& averages) {
  for (NamedTensor& one : state) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (one.tensor.is_same(parameters[i].tensor)) {
        one.tensor = averages[i].tensor;
        break;
      }
    }
  }
  return state;
}

std::vector<at::Tensor> GradientsOf(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& parameter : parameters) gradients.push_back(parameter.tensor.grad());
  return gradients;
}

}  // namespace

ReplicaStrategy::ReplicaStrategy(StrategyParts parts)
    : parts_(std::move(parts)),
      parameters_(model().Parameters()),
      buffers_(model().Buffers()),
      state_(TensorBytes(parameters_)) {
  if (options().scales_losses()) {
    const double scale = options().loss_scale > 0 ? options().loss_scale : kFirstScale;
    scaler_.emplace(scale, options().loss_scale_window);
  }
  if (options().ema_decay > 0) ema_ = std::make_unique<Ema>(parameters_, options().ema_decay);
}

absl::Status ReplicaStrategy::Load(const Value& saved) {
  absl::Status status = LoadModel(saved, StateDict(), *parts_.optimizer);
  if (!status.ok()) return status;
  if (const Value* averages = saved.Find("ema"); ema_ && averages != nullptr) {
    status = LoadStateDict(*averages, ema_->averages()).status();
  } else if (ema_) {
    ema_->Restart();
  }
  if (!status.ok()) return status;
  if (const Value* scaler = saved.Find("scaler"); scaler_ && scaler != nullptr) {
    const absl::StatusOr<LossScaler::State> scale = ReadScaler(*scaler);
    if (!scale.ok()) return scale.status();
    scaler_->Load(*scale);
  }
  // Checkpoints did not always have it.
  if (const Value* order = saved.Find("gradient_order")) {
    absl::StatusOr<std::vector<std::string>> names = ReadNames(*order);
    if (!names.ok()) return names.status();
    gradient_order_ = *std::move(names);
  }
  loaded_ = true;
  return absl::OkStatus();
}

void ReplicaStrategy::Begin() {
  Connect(gradient_order_);
  // Until now only rank 0 had the parameters of --init-from.
  if (ema_ && !loaded_) ema_->Restart();
}

StepResult ReplicaStrategy::Step(const LoadedBatch& batch, std::int64_t step, double lr) {
  const bool skips = options().on_nonfinite == OnNonFinite::kSkip;
  SetTraining(true);
  for (const NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  if (skips) KeepBuffers();

  StepResult result;
  result.loss = ComputeGradients(batch, step);
  result.predictions = batch.plan.global * PredictionsPerSample(batch.data);
  if (options().on_nonfinite == OnNonFinite::kStop && group().device().is_cpu() &&
      !std::isfinite(result.loss.item<double>())) {
    result.not_finite = FirstNotFinite(parameters_);
  }
  state_.Measure();
  phases().Enter(Phase::kOptimizer);
  if (scaler_) {
    result.loss_scale = scaler_->scale();
    const bool overflow = !UnscaleGradients();
    result.skipped = overflow && scaler_->blames_scale();
    scaler_->Update(!overflow);
  }
  if (options().clip_norm > 0) {
    result.gradient_norm = ClipGradientNorm(parameters_, options().clip_norm);
  }
  // DDP leaves the same gradients on every rank, so all ranks decide alike without asking each
  // other. With averaged parameters each rank decides about its own step.
  if (skips && !result.skipped) {
    result.skipped = options().clip_norm > 0 ? !std::isfinite(result.gradient_norm.item<double>())
                                             : !AllFinite(GradientsOf(parameters_));
  }
  if (result.skipped && skips) PutBackBuffers();
  if (!result.skipped) {
    parts_.optimizer->Step(lr);
    if (ema_) ema_->Update();
  }
  AfterUpdate();
  phases().Enter(Phase::kOther);
  return result;
}

BatchSums ReplicaStrategy::Evaluate(const LoadedBatch& batch) {
  SetTraining(false);
  return MeasureBatch(batch, options(), group().device(), model());
}

std::vector<NamedTensor> ReplicaStrategy::Whole() {
  return ema_ ? WithAverages(StateDict(), parameters_, ema_->averages()) : StateDict();
}

StrategyReport ReplicaStrategy::Report() const {
  StrategyReport report = {.parameter_bytes = TensorBytes(parameters_)};
  if (group().device().is_cpu()) {
    const int kept = KeptNumbers(options().optimizer, options().ema_decay > 0);
    report.memory = {state_.bytes(),
                     StateBytes(/*stage=*/0, /*ranks=*/1, report.parameter_bytes, kept)};
  }
  return report;
}

absl::StatusOr<Dict> ReplicaStrategy::Save(double lr, bool everywhere) {
  if (everywhere) ShareBuffers();
  Dict saved;
  saved.Set("model", StateDictValue(StateDict()));
  if (ema_) saved.Set("ema", StateDictValue(ema_->averages()));
  saved.Set("optimizer", OptimizerStateValue(parts_.optimizer->State(lr)));
  if (scaler_) saved.Set("scaler", ScalerValue(*scaler_));
  saved.Set("gradient_order", NamesValue(GradientOrder()));
  return saved;
}

at::Tensor ReplicaStrategy::PassThrough(const MicroBatch& part, std::int64_t step, double divisor,
                                        const std::function<at::Tensor(const Forward&)>& forward) {
  phases().Enter(Phase::kForward);
  const at::Device& device = group().device();
  const Batch moved = MovedTo(part.batch, device, options().dtype);
  const RandomPlace place = {.seed = options().seed,
                             .step = step,
                             .micro_batch = part.index,
                             .data_rank = this->place().part};
  model().SetOthers(moved.others);
  at::Tensor loss;
  {
    const Autocast autocast(options().autocast_type(), device.is_cuda());
    const at::Tensor scores = forward([&] { return model().ForwardAt(place, moved.inputs); });
    loss = LossOfFirst(options().model.objective, scores, moved, part.own);
  }
  phases().Enter(Phase::kBackward);
  loss.div(scaler_ ? divisor / scaler_->scale() : divisor).backward();
  return loss.detach().to(at::kDouble);
}

void ReplicaStrategy::SetTraining(bool training) {
  if (std::exchange(training_, training) != training) model().SetTraining(training);
}

// Whether all gradients are finite, which then are what they would be of losses that are not
// scaled.
bool ReplicaStrategy::UnscaleGradients() {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = GradientsOf(parameters_);
  if (!AllFinite(gradients)) return false;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.defined()) gradient.mul_(1 / scaler_->scale());
  }
  return true;
}

// A step that is skipped must leave no trace, and the forward pass changes buffers.
void ReplicaStrategy::KeepBuffers() {
  const at::NoGradGuard no_grad;
  if (kept_buffers_.empty()) {
    for (const NamedTensor& buffer : buffers_)
      kept_buffers_.push_back(at::empty_like(buffer.tensor));
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) kept_buffers_[i].copy_(buffers_[i].tensor);
}

void ReplicaStrategy::PutBackBuffers() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].tensor.copy_(kept_buffers_[i]);
}

// Gives all ranks rank 0's buffers: all have the same parameters, but each has its own statistics
// of batch normalization. A run that resumes has rank 0's, too.
void ReplicaStrategy::ShareBuffers() {
  if (buffers_.empty() || group().size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : buffers_) buffers.push_back(buffer.tensor);
  group().Broadcast(buffers, /*root=*/0, Use::kOther);
}

}  // namespace muster::trainer
