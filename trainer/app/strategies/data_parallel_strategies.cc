// Each rank has the whole model and a part of each batch; alone, the whole batch.
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "trainer/app/strategies/replica_strategy.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/models/autocast.h"
#include "trainer/parallel/data_parallel.h"
#include "trainer/quant/qat_run.h"

namespace muster::trainer {
namespace {

class DdpStrategy : public ReplicaStrategy {
 public:
  explicit DdpStrategy(StrategyParts parts) : ReplicaStrategy(std::move(parts)) {
    if (options().parallel.sync_batch_norm) {
      synced_ = std::make_unique<SyncedBatchNorm>(group());
      model().SetBatchNorm(synced_->function());
    }
    if (options().qat.on) {
      qat_.emplace(model().module(), options().qat, options().epochs, group());
    }
  }

  void BeginEpoch(std::int64_t epoch) override {
    if (qat_) qat_->BeginEpoch(epoch);
  }
  std::function<BatchSums(const LoadedBatch& batch)> Converted() override {
    const std::shared_ptr<const Int8Network> int8 = qat_ ? qat_->Convert() : nullptr;
    if (!int8) return nullptr;
    return [this, int8](const LoadedBatch& batch) {
      return MeasureScores(batch, options(), group().device(),
                           [&int8](const Batch& moved) { return int8->Forward(moved.inputs); });
    };
  }

  // Each rank's batch normalization has learned from its own part of the last batch.
  void Settle() override {
    if (ddp_) ddp_->BroadcastBuffers();
  }
  std::vector<std::string> ProfileLines() override {
    const std::unique_ptr<const Int8Network> int8 = qat_ ? qat_->Convert() : nullptr;
    if (!int8) return {};
    const DataShape& shape = options().shape;
    return {CompareInference(qat_->network(), *int8, {shape.channels, shape.height, shape.width})};
  }
  StrategyReport Report() const override {
    StrategyReport report = ReplicaStrategy::Report();
    if (!ddp_) return report;
    report.traffic = ddp_->traffic();
    report.timings = ddp_->timings();
    return report;
  }

 protected:
  // Alone there is nothing to average, and no reason to copy gradients into buckets.
  void Connect(const std::vector<std::string>& gradient_order) override {
    if (group().size() == 1) return;
    DdpOptions ddp = options().parallel.ddp;
    // Ranges are the same on all ranks after each step: there is nothing to send but the statistics
    // of batch normalization.
    if (qat_ && !qat_->network().normalizes()) ddp.broadcast_buffers = false;
    ddp_.emplace(parameters(), model().Buffers(), group(), ddp, gradient_order);
  }
  void AfterUpdate() override {
    if (qat_) qat_->AfterStep(has_own_);
  }

  // The last batch of an epoch may be smaller, and ranks may have filled their part of it up with
  // samples that others have too. Those pass through the model and count for nothing: a rank's loss
  // is the sum over its own samples, divided by their mean number over ranks. So the mean of the
  // ranks' gradients, which is what DDP computes, is the gradient of the mean loss over the whole
  // batch. Without this the loss curve would depend on the number of ranks. Nor may they enter what
  // is computed of a batch over all ranks: statistics of --sync-bn, ranges of --qat.
  at::Tensor ComputeGradients(const LoadedBatch& batch, std::int64_t step) override {
    const double divisor =
        batch.plan.mean_own(group().size()) * static_cast<double>(PredictionsPerSample(batch.data));
    const auto forward = [this](const Forward& run) { return ddp_ ? ddp_->Forward(run) : run(); };
    at::Tensor own_loss = at::zeros({}, at::device(group().device()).dtype(at::kDouble));
    has_own_ = batch.plan.own > 0;
    for (const MicroBatch& whole : SplitUp(batch, options().accumulate)) {
      const MicroBatch part = synced_ || qat_ ? WithoutPadding(whole) : whole;
      if (synced_) synced_->SetCounts(part.own > 0);
      if (ddp_ && !part.last) {
        const auto no_sync = ddp_->NoSync();
        own_loss += PassThrough(part, step, divisor, forward);
      } else {
        own_loss += PassThrough(part, step, divisor, forward);
      }
    }
    return own_loss;
  }

  std::vector<std::string> GradientOrder() override {
    return ddp_ ? ddp_->GradientOrder() : std::vector<std::string>();
  }

 private:
  std::unique_ptr<SyncedBatchNorm> synced_;  // null without --sync-bn
  std::optional<QatRun> qat_;
  bool has_own_ = true;  // samples of this step
  std::optional<DistributedDataParallel> ddp_;
};

}  // namespace

std::unique_ptr<Strategy> MakeDdpStrategy(StrategyParts parts) {
  return std::make_unique<DdpStrategy>(std::move(parts));
}

// Each rank trains alone on its part of the data, and parameters are averaged now and then.

namespace {

class AveragingStrategy : public ReplicaStrategy {
 public:
  using ReplicaStrategy::ReplicaStrategy;

  void Settle() override { averaging_->Finish(); }
  StrategyReport Report() const override {
    StrategyReport report = ReplicaStrategy::Report();
    report.traffic = averaging_->traffic();
    return report;
  }

 protected:
  void Connect(const std::vector<std::string>& /*gradient_order*/) override {
    averaging_.emplace(parameters(), model().Buffers(), group(), options().parallel.average_every);
  }

  at::Tensor ComputeGradients(const LoadedBatch& batch, std::int64_t step) override {
    at::Tensor loss = at::zeros({}, at::device(group().device()).dtype(at::kDouble));
    // A rank without samples of its own has nothing to learn from this step.
    if (batch.plan.own == 0) return loss;
    const auto predictions = static_cast<double>(batch.plan.own * PredictionsPerSample(batch.data));
    for (const MicroBatch& part : SplitUp(batch, options().accumulate)) {
      loss += PassThrough(part, step, predictions, [](const Forward& run) { return run(); });
    }
    return loss;
  }

  void AfterUpdate() override { averaging_->AfterStep(); }

 private:
  std::optional<ParameterAveraging> averaging_;  // once connected
};

}  // namespace

std::unique_ptr<Strategy> MakeAveragingStrategy(StrategyParts parts) {
  return std::make_unique<AveragingStrategy>(std::move(parts));
}

// Replicas of the model in threads of one process: what DDP is compared with.

namespace {

using Models = std::vector<std::unique_ptr<Model>>;

class ThreadsStrategy : public ReplicaStrategy {
 public:
  ThreadsStrategy(StrategyParts parts, Models others)
      : ReplicaStrategy(std::move(parts)), others_(std::move(others)), data_parallel_(Replicas()) {}

  // Memory is that of all replicas together; the first has the optimizer, and at the end of a
  // backward pass all gradients.
  StrategyReport Report() const override {
    StrategyReport report = ReplicaStrategy::Report();
    report.traffic = data_parallel_.traffic();
    const auto copies = static_cast<std::int64_t>(others_.size()) * report.parameter_bytes;
    report.memory.counted += copies;  // which were there before the meter
    report.memory.formula += copies;
    return report;
  }

 protected:
  // Each step begins with copies of the first replica.
  void Connect(const std::vector<std::string>& /*gradient_order*/) override {}

  // The threads draw random numbers from one generator, in an order of their own.
  at::Tensor ComputeGradients(const LoadedBatch& batch, std::int64_t /*step*/) override {
    // Forward and backward cannot be told apart: each thread is where it is.
    phases().Enter(Phase::kBackward);
    const Batch moved = MovedTo(batch.data, at::kCPU, options().dtype);
    const auto predictions = static_cast<double>(batch.plan.own * PredictionsPerSample(batch.data));
    const double mean = data_parallel_.ForwardBackward(batch.plan.own, [&](int replica,
                                                                           std::int64_t begin,
                                                                           std::int64_t end) {
      Model& mine = replica == 0 ? model() : *others_[static_cast<std::size_t>(replica) - 1];
      const Autocast autocast(options().autocast_type(), /*cuda=*/false);
      const Batch chunk = BatchRows(moved, begin, end - begin);
      mine.SetOthers(chunk.others);
      const at::Tensor scores = mine.Forward(chunk.inputs);
      return options().model.objective.LossOf(scores, chunk.targets, chunk.others).div(predictions);
    });
    return at::scalar_tensor(mean * predictions, at::kDouble);
  }

 private:
  std::vector<DataParallel::Replica> Replicas() const {
    std::vector<DataParallel::Replica> replicas = {{parameters(), model().Buffers()}};
    for (const auto& other : others_) replicas.push_back({other->Parameters(), other->Buffers()});
    return replicas;
  }

  const Models others_;
  DataParallel data_parallel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Strategy>> MakeThreadsStrategy(StrategyParts parts) {
  if (!parts.group.device().is_cpu()) {
    return absl::InvalidArgumentError("--parallel threads runs on the CPU; add --comm gloo");
  }
  if (parts.options.recompute && parts.model->draws_random_numbers()) {
    return absl::InvalidArgumentError(
        "--recompute with --parallel threads needs a model that draws no random numbers: threads "
        "share one generator, and could not draw the same ones again");
  }
  Models others;
  for (int i = 1; i < parts.options.parallel.replicas; ++i) {
    auto made = MakeChosenModel(parts.options, at::kCPU);
    if (!made.ok()) return made.status();
    others.push_back(*std::move(made));
  }
  return std::make_unique<ThreadsStrategy>(std::move(parts), std::move(others));
}

}  // namespace muster::trainer
