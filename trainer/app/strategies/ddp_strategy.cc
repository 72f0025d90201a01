// Each rank has the whole model and a part of each batch; alone, the whole batch.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/app/strategies/replica_strategy.h"
#include "trainer/parallel/sync_batch_norm.h"
#include "trainer/quant/qat_run.h"

namespace muster::trainer {
namespace {

// What replaces the model's batch normalization with --sync-bn.
BatchNormFunction SyncedBatchNorm(Group& group) {
  return [&group](const at::Tensor& input, const BatchNormParts& parts) {
    if (!parts.training || group.size() == 1) return LocalBatchNorm(input, parts);
    parts.num_batches_tracked.add_(1);
    return SyncBatchNormTraining(input,
                                 {parts.weight, parts.bias, parts.running_mean, parts.running_var},
                                 parts.momentum, parts.epsilon, group);
  };
}

class DdpStrategy : public ReplicaStrategy {
 public:
  explicit DdpStrategy(StrategyParts parts) : ReplicaStrategy(std::move(parts)) {
    if (options().parallel.sync_batch_norm) model().SetBatchNorm(SyncedBatchNorm(group()));
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
                           [&int8](const at::Tensor& inputs) { return int8->Forward(inputs); });
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
  Traffic traffic() const override { return ddp_ ? ddp_->traffic() : Traffic(); }
  std::optional<DdpTimings> timings() const override {
    return ddp_ ? std::optional(ddp_->timings()) : std::nullopt;
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
    if (qat_) qat_->AfterStep();
  }

  // The last batch of an epoch may be smaller, and ranks may have filled their part of it up with
  // samples that others have too. Those pass through the model and count for nothing: a rank's loss
  // is the sum over its own samples, divided by their mean number over ranks. So the mean of the
  // ranks' gradients, which is what DDP computes, is the gradient of the mean loss over the whole
  // batch. Without this the loss curve would depend on the number of ranks.
  at::Tensor ComputeGradients(const LoadedBatch& batch, std::int64_t step) override {
    const double divisor =
        batch.plan.mean_own(group().size()) * static_cast<double>(PredictionsPerSample(batch.data));
    const auto forward = [this](const Forward& run) { return ddp_ ? ddp_->Forward(run) : run(); };
    at::Tensor own_loss = at::zeros({}, at::device(group().device()).dtype(at::kDouble));
    for (const MicroBatch& part : SplitUp(batch, options().accumulate)) {
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
  std::optional<QatRun> qat_;
  std::optional<DistributedDataParallel> ddp_;
};

}  // namespace

std::unique_ptr<Strategy> MakeDdpStrategy(StrategyParts parts) {
  return std::make_unique<DdpStrategy>(std::move(parts));
}

}  // namespace muster::trainer
