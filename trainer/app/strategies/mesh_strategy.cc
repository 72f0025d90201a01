#include "trainer/app/strategies/strategy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "trainer/app/strategies/mesh_groups.h"
#include "trainer/app/strategies/mesh_part.h"
#include "trainer/app/strategies/mesh_plan.h"
#include "trainer/io/state_dict.h"
#include "trainer/models/autocast.h"
#include "trainer/optim/gradients.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/data_parallel.h"
#include "trainer/parallel/pipeline_engine.h"
#include "trainer/parallel/rpc_pipeline.h"
#include "trainer/pipeline/simulation.h"

namespace muster::trainer {
namespace {

// What is to be made of a whole checkpoint once this rank has its part.
struct LoadedState {
  std::vector<ParameterState> optimizer;
  std::vector<NamedTensor> averages;  // empty: they begin with the parameters
};

struct MeshParts {
  Options options;
  MeshGroups groups;
  MeshPlan plan;
  World& world;
  PhaseTracker& phases;
  StateMeter state;  // made before anything but the model
};

// A batch on its way through the model, in parts; what comes out on the last rank of a pipeline.
struct Passing {
  std::vector<MicroBatch> parts;
  std::vector<Batch> moved;  // on the device

  const MicroBatch& part(int index) const { return parts[static_cast<std::size_t>(index)]; }
  const Batch& on_device(int index) const { return moved[static_cast<std::size_t>(index)]; }
};

class MeshStrategy : public Strategy {
 public:
  MeshStrategy(MeshParts parts, std::unique_ptr<Model> model, std::unique_ptr<Optimizer> whole,
               std::optional<MeshDryRun> dry_run)
      : parts_(std::move(parts)),
        part_(std::move(model), parts_.plan.cuts, parts_.groups, std::move(dry_run)),
        whole_optimizer_(std::move(whole)),
        state_(parts_.state),
        traffic_(parts_.groups) {
    if (!parts_.plan.schedule) return;
    Group& pipeline = *parts_.groups.pipeline;
    if (options().parallel.mesh.driver == Driver::kRpc) {
      driver_ = std::make_unique<RpcPipeline>(pipeline);
    } else {
      driver_ = std::make_unique<PipelineEngine>(pipeline, *parts_.plan.schedule);
    }
  }

  absl::Status Load(const Value& saved) override;
  void Begin() override;
  DataPlace place() const override { return {mesh_place().data, mesh().data}; }
  StepResult Step(const LoadedBatch& batch, std::int64_t step, double lr) override;
  BatchSums Evaluate(const LoadedBatch& batch) override;
  // Each data rank's batch normalization has learned from its own part of the batches.
  void Settle() override { part_.ShareBuffers(); }
  EmaInPlace Averaged() override {
    return EmaInPlace(ema_.get(), [this] { part_.sharded().Changed(); });
  }
  std::vector<NamedTensor> StateDict() const override {
    return begun_ ? part_.OwnState() : part_.model().StateDict();
  }
  std::vector<NamedTensor> Whole() override {
    return part_.WholeState(ema_ ? ema_->averages() : part_.sharded().shards());
  }
  absl::StatusOr<Dict> Save(double lr, bool everywhere) override;
  std::vector<std::string> StartLines() const override {
    return MeshLines(options(), parts_.groups, parts_.plan, part_.model(), foretold_);
  }
  StrategyReport Report() const override;

 private:
  const Options& options() const { return parts_.options; }
  const Mesh& mesh() const { return parts_.groups.mesh; }
  const MeshPlace& mesh_place() const { return parts_.groups.place; }
  Group& world() const { return parts_.world.all(); }
  bool has_outputs() const { return mesh_place().pipeline + 1 == mesh().pipeline; }
  // Of the ranks that compute a loss, the one that it counts on.
  bool counts() const { return has_outputs() && mesh_place().tensor == 0; }

  Passing Prepare(const LoadedBatch& batch, std::int64_t most) const;
  void SetTraining(bool training);
  at::Tensor Train(const Passing& passing, std::int64_t step, double divisor);
  at::Tensor Forward(const Passing& passing, const RandomPlace& place, int chunk, int micro_batch,
                     const at::Tensor& inputs);
  at::Tensor LossOf(const Passing& passing, int micro_batch, const at::Tensor& outputs) const;
  PipelineStep StepOf(const Passing& passing,
                      std::function<at::Tensor(int, int, const at::Tensor&)> forward,
                      std::function<at::Tensor(int, const at::Tensor&)> loss) const;

  const MeshParts parts_;
  MeshPart part_;
  std::unique_ptr<SyncedBatchNorm> synced_;     // null without --sync-bn
  Objective objective_;                         // for what the model returns here
  std::unique_ptr<Optimizer> whole_optimizer_;  // of the whole model, until Begin()
  std::unique_ptr<Optimizer> optimizer_;        // of what this rank owns
  StateMeter state_;
  PipelineWait wait_;
  std::unique_ptr<Optimizer> groups_;  // says which groups the whole has
  std::unique_ptr<Ema> ema_;
  std::unique_ptr<PipelineDriver> driver_;  // of a pipeline of several ranks
  std::optional<LoadedState> loaded_;
  DimensionBytes foretold_ = {};
  std::int64_t steps_ = 0;  // of this run
  MeshTraffic traffic_;
  bool begun_ = false;
  bool training_ = true;
};

absl::Status MeshStrategy::Load(const Value& saved) {
  absl::Status status = LoadModel(saved, StateDict(), *whole_optimizer_);
  if (!status.ok()) return status;
  LoadedState loaded;
  if (const Value* averages = saved.Find("ema"); options().ema_decay > 0 && averages != nullptr) {
    for (const NamedTensor& parameter : part_.model().Parameters()) {
      loaded.averages.push_back({parameter.name, parameter.tensor.detach().clone()});
    }
    status = LoadStateDict(*averages, loaded.averages).status();
    if (!status.ok()) return status;
  }
  loaded.optimizer = whole_optimizer_->State(/*lr=*/0).parameters;
  loaded_ = std::move(loaded);
  return absl::OkStatus();
}

void MeshStrategy::Begin() {
  whole_optimizer_.reset();
  const int zero = options().parallel.zero;
  const absl::Status taken =
      part_.Take(static_cast<Shard>(std::max(zero, 1)), options().parallel.mesh, parts_.world);
  if (!taken.ok()) throw std::runtime_error(std::string(taken.message()));
  begun_ = true;
  if (options().parallel.sync_batch_norm) {  // only now, as Take() tries the model out
    synced_ = std::make_unique<SyncedBatchNorm>(*parts_.groups.data);
    part_.model().SetBatchNorm(synced_->function());
  }
  objective_ = part_.model().ObjectiveOf(options().model.objective);
  ShardedParameters& sharded = part_.sharded();
  optimizer_ = MakePartOptimizer(options().optimizer, sharded.shards());
  groups_ = MakePartOptimizer(options().optimizer, part_.shapes());
  if (options().ema_decay > 0) ema_ = std::make_unique<Ema>(sharded.shards(), options().ema_decay);
  if (loaded_) {
    const absl::Status loaded =
        optimizer_->Load({.parameters = part_.OwnOptimizer(loaded_->optimizer)});
    if (!loaded.ok()) throw std::runtime_error(std::string(loaded.message()));
    if (ema_ && !loaded_->averages.empty()) part_.TakePart(loaded_->averages, ema_->averages());
    loaded_.reset();
  }
  parts_.groups.pipeline->PrepareMessages();
  foretold_ = part_.Foretell((options().batch_size + mesh().data - 1) / mesh().data, world());
}

void MeshStrategy::SetTraining(bool training) {
  if (std::exchange(training_, training) != training) part_.model().SetTraining(training);
}

Passing MeshStrategy::Prepare(const LoadedBatch& batch, std::int64_t most) const {
  Passing passing = {.parts = SplitUp(batch, most)};
  for (MicroBatch& part : passing.parts) {
    // What only fills up a batch must not enter statistics that are of the whole batch.
    if (synced_) part = WithoutPadding(part);
    passing.moved.push_back(MovedTo(part.batch, parts_.world.device(), options().dtype));
  }
  return passing;
}

at::Tensor MeshStrategy::Forward(const Passing& passing, const RandomPlace& place, int chunk,
                                 int micro_batch, const at::Tensor& inputs) {
  part_.model().SetOthers(passing.on_device(micro_batch).others);
  const Autocast autocast(options().autocast_type(), parts_.world.device().is_cuda());
  return part_.Forward(place, chunk, inputs);
}

at::Tensor MeshStrategy::LossOf(const Passing& passing, int micro_batch,
                                const at::Tensor& outputs) const {
  const std::int64_t own = passing.part(micro_batch).own;
  const Batch batch = BatchRows(passing.on_device(micro_batch), 0, own);
  const Autocast autocast(options().autocast_type(), parts_.world.device().is_cuda());
  return objective_.LossOf(outputs.narrow(0, 0, own), batch.targets, batch.others);
}

PipelineStep MeshStrategy::StepOf(const Passing& passing,
                                  std::function<at::Tensor(int, int, const at::Tensor&)> forward,
                                  std::function<at::Tensor(int, const at::Tensor&)> loss) const {
  PipelineStep step;
  for (const Batch& batch : passing.moved) step.input_sizes.push_back(batch.inputs.sizes().vec());
  step.inputs = [&passing](int micro_batch) { return passing.on_device(micro_batch).inputs; };
  step.forward = std::move(forward);
  step.loss = std::move(loss);
  return step;
}

// Adds up gradients of the micro-batches. Returns the sum of the losses of this rank's own samples,
// 0 where they do not count.
at::Tensor MeshStrategy::Train(const Passing& passing, std::int64_t step, double divisor) {
  ShardedParameters& sharded = part_.sharded();
  at::Tensor sum = at::zeros({}, at::device(parts_.world.device()).dtype(at::kDouble));
  const auto forward = [&](int chunk, int micro_batch, const at::Tensor& inputs) {
    if (synced_) synced_->SetCounts(passing.part(micro_batch).own > 0);
    return Forward(passing,
                   {.seed = options().seed,
                    .step = step,
                    .micro_batch = micro_batch,
                    .data_rank = mesh_place().data},
                   chunk, micro_batch, inputs);
  };
  const auto loss = [&](int micro_batch, const at::Tensor& outputs) {
    const at::Tensor loss = LossOf(passing, micro_batch, outputs);
    if (counts()) sum.add_(loss.detach().to(at::kDouble));
    return loss.div(divisor);
  };
  if (driver_) {
    parts_.phases.Enter(Phase::kForward);
    driver_->Train(StepOf(passing, forward, loss));
    part_.SumShared();
    sharded.EndBackward();
    if (steps_ > 0) {
      wait_.step_ms += driver_->times().step.count();
      wait_.waited_ms += driver_->times().waited.count();
    }
    return sum;
  }
  for (std::size_t i = 0; i < passing.parts.size(); ++i) {
    const int micro_batch = static_cast<int>(i);
    parts_.phases.Enter(Phase::kForward);
    const at::Tensor divided =
        loss(micro_batch, forward(/*chunk=*/0, micro_batch, passing.moved[i].inputs));
    parts_.phases.Enter(Phase::kBackward);
    divided.backward();
    sharded.EndBackward();
  }
  return sum;
}

StepResult MeshStrategy::Step(const LoadedBatch& batch, std::int64_t step, double lr) {
  SetTraining(true);
  const std::int64_t micro_batches =
      parts_.plan.schedule ? parts_.plan.schedule->shape.micro_batches : options().accumulate;
  const Passing passing = Prepare(batch, micro_batches);
  const std::int64_t predictions = PredictionsPerSample(batch.data);
  const bool skips = options().on_nonfinite == OnNonFinite::kSkip;
  // A step that is skipped must leave no trace, and the forward pass changes buffers.
  std::vector<at::Tensor> kept;
  for (const NamedTensor& buffer : part_.buffers()) {
    if (skips) kept.push_back(buffer.tensor.detach().clone());
  }
  StepResult result;
  result.predictions = batch.plan.global * predictions;
  result.loss =
      Train(passing, step, batch.plan.mean_own(mesh().data) * static_cast<double>(predictions));
  if (options().on_nonfinite == OnNonFinite::kStop && parts_.world.device().is_cpu() &&
      !std::isfinite(result.loss.item<double>())) {
    result.not_finite = FirstNotFinite(part_.OwnState());
  }
  // Reduced, gradients of the first stage are no longer what its formula counts. With the others,
  // threads of Gloo's are done with the last unit only after a moment, so the optimizer goes first.
  const bool reduces_at_end = options().parallel.zero < static_cast<int>(Shard::kGradients);
  if (reduces_at_end) state_.Measure();
  part_.sharded().Finish();
  part_.SumOverSequence();
  parts_.phases.Enter(Phase::kOptimizer);
  const bool clips = options().clip_norm > 0;
  if (clips) result.gradient_norm = part_.Clip(options().clip_norm, world());
  if (skips) {
    result.skipped = clips ? !std::isfinite(result.gradient_norm.item<double>())
                           : !part_.GradientsFinite(world());
  }
  if (result.skipped) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      at::Tensor buffer = part_.buffers()[i].tensor.detach();
      buffer.copy_(kept[i]);
    }
  } else {
    optimizer_->Step(lr);
    if (ema_) ema_->Update();
  }
  if (!reduces_at_end) state_.Measure();
  part_.sharded().Changed();
  ++steps_;
  parts_.phases.Enter(Phase::kOther);
  return result;
}

BatchSums MeshStrategy::Evaluate(const LoadedBatch& batch) {
  const at::NoGradGuard no_grad;
  SetTraining(false);
  // The next step would do it otherwise.
  if (options().parallel.zero < static_cast<int>(Shard::kParameters)) part_.sharded().GatherAll();
  const at::Tensor none = at::zeros({}, at::device(parts_.world.device()).dtype(at::kDouble));
  BatchSums sums = {.loss = none, .metrics = {}};
  for (std::size_t i = 0; i < objective_.metrics.size(); ++i) sums.metrics.push_back(none);
  const MeshTraffic::LeftOut tests(traffic_);
  const Passing passing =
      Prepare(batch, parts_.plan.schedule ? parts_.plan.schedule->shape.micro_batches : 1);
  const std::vector<Metric>& metrics = objective_.metrics;
  const auto forward = [&](int chunk, int micro_batch, const at::Tensor& inputs) {
    return Forward(passing, {}, chunk, micro_batch, inputs);
  };
  const auto measure = [&](int micro_batch, const at::Tensor& outputs) {
    const std::int64_t own = passing.part(micro_batch).own;
    const at::Tensor loss = LossOf(passing, micro_batch, outputs);
    const Batch batch = BatchRows(passing.on_device(micro_batch), 0, own);
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const at::Tensor value =
          metrics[i].SumOf(outputs.narrow(0, 0, own), batch.targets, batch.others);
      if (counts()) sums.metrics[i] = sums.metrics[i] + value;
    }
    if (counts()) {
      sums.loss = sums.loss + loss;
      sums.predictions += static_cast<double>(batch.targets.numel());
    }
    return loss;
  };
  if (driver_) {
    driver_->Evaluate(StepOf(passing, forward, measure));
  } else {
    for (std::size_t i = 0; i < passing.parts.size(); ++i) {
      measure(static_cast<int>(i), forward(0, static_cast<int>(i), passing.moved[i].inputs));
    }
  }
  return sums;
}

absl::StatusOr<Dict> MeshStrategy::Save(double lr, bool /*everywhere*/) {
  Dict saved;
  saved.Set("model", StateDictValue(part_.WholeState(part_.sharded().shards())));
  if (ema_) saved.Set("ema", StateDictValue(part_.WholeParameters(ema_->averages())));
  OptimizerState state = groups_->State(lr);
  state.parameters = part_.WholeOptimizer(optimizer_->State(lr).parameters);
  saved.Set("optimizer", OptimizerStateValue(state));
  return saved;
}

StrategyReport MeshStrategy::Report() const {
  StrategyReport report = {.parameter_bytes = part_.parameter_bytes(),
                           .traffic = traffic_.Total(steps_),
                           .traffic_by_dimension = traffic_.ByDimension(steps_)};
  if (parts_.world.device().is_cpu()) {
    report.memory = {state_.bytes(),
                     StateBytes(std::max(options().parallel.zero, 1), mesh().data,
                                part_.sharded().parameter_bytes(),
                                KeptNumbers(options().optimizer, options().ema_decay > 0))};
  }
  if (const auto& schedule = parts_.plan.schedule) {
    report.pipeline_wait = wait_;
    report.pipeline_wait->theory = TheoryOfBubble(schedule->kind, schedule->shape, {}).share;
  }
  return report;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Strategy>> MakeMeshStrategy(const Options& options,
                                                           std::unique_ptr<Model> model,
                                                           World& world, PhaseTracker& phases) {
  const StateMeter state(TensorBytes(model->Parameters()));
  absl::StatusOr<MeshGroups> groups = ConnectMesh(options, *model, world);
  if (!groups.ok()) return groups.status();
  absl::StatusOr<MeshPlan> plan = PlanMesh(options, *model, groups->mesh, world.comm());
  if (!plan.ok()) return plan.status();
  auto whole = MakeOptimizer(options.optimizer, model->Parameters());
  if (!whole.ok()) return whole.status();
  std::optional<MeshDryRun> dry_run = MeshDryRun::Of(options, *model);
  MeshParts parts = {options, *std::move(groups), *std::move(plan), world, phases, state};
  return std::make_unique<MeshStrategy>(std::move(parts), std::move(model), *std::move(whole),
                                        std::move(dry_run));
}

}  // namespace muster::trainer
