// Each rank has the whole model and a part of each batch; alone, the whole batch.
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "trainer/app/strategies/micro_batch.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/parallel/sync_batch_norm.h"

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

class DdpStrategy : public Strategy {
 public:
  explicit DdpStrategy(const StrategyParts& parts) : parts_(parts) {
    if (parts.options.parallel.sync_batch_norm) {
      parts.model.SetBatchNorm(SyncedBatchNorm(parts.group));
    }
    // Alone there is nothing to average, and no reason to copy gradients into buckets.
    if (parts.group.size() == 1) return;
    ddp_.emplace(parts.model.Parameters(), parts.model.Buffers(), parts.group,
                 parts.options.parallel.ddp, parts.gradient_order);
  }

  // The last batch of an epoch may be smaller, and ranks may have filled their part of it up with
  // samples that others have too. Those pass through the model and count for nothing: a rank's loss
  // is the sum over its own samples, divided by their mean number over ranks. So the mean of the
  // ranks' gradients, which is what DDP computes, is the gradient of the mean loss over the whole
  // batch. Without this the loss curve would depend on the number of ranks.
  double ForwardBackward(const LoadedBatch& batch, std::int64_t step) override {
    const double divisor = batch.plan.mean_own(parts_.group.size()) *
                           static_cast<double>(PredictionsPerSample(batch.data));
    double own_loss = 0;
    for (const MicroBatch& part : SplitUp(batch, parts_.options.accumulate)) {
      if (ddp_ && !part.last) {
        const auto no_sync = ddp_->NoSync();
        own_loss += Pass(part, step, divisor);
      } else {
        own_loss += Pass(part, step, divisor);
      }
    }
    return own_loss;
  }

  // Each rank's batch normalization has learned from its own part of the last batch.
  void Finish() override {
    if (ddp_) ddp_->BroadcastBuffers();
  }

  std::vector<std::string> GradientOrder() override {
    return ddp_ ? ddp_->GradientOrder() : std::vector<std::string>();
  }
  Traffic traffic() const override { return ddp_ ? ddp_->traffic() : Traffic(); }
  std::optional<DdpTimings> timings() const override {
    return ddp_ ? std::optional(ddp_->timings()) : std::nullopt;
  }

 private:
  double Pass(const MicroBatch& part, std::int64_t step, double divisor) {
    return PassThrough(parts_, part, divisor, [&](const at::Tensor& inputs) {
      const std::function<at::Tensor()> forward = [&] {
        return parts_.model.ForwardAt(PlaceOf(parts_, step, part), inputs);
      };
      return ddp_ ? ddp_->Forward(forward) : forward();
    });
  }

  const StrategyParts parts_;
  std::optional<DistributedDataParallel> ddp_;
};

}  // namespace

std::unique_ptr<Strategy> MakeDdpStrategy(const StrategyParts& parts) {
  return std::make_unique<DdpStrategy>(parts);
}

}  // namespace muster::trainer
