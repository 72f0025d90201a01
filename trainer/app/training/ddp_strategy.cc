// Each rank has the whole model and a part of each batch; alone, the whole batch.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "trainer/app/training/strategy.h"
#include "trainer/models/autocast.h"
#include "trainer/models/loss.h"
#include "trainer/parallel/sync_batch_norm.h"

namespace muster::trainer {
namespace {

// What replaces the model's batch normalization with --sync-bn.
BatchNormFunction SyncedBatchNorm(ProcessGroup& group) {
  return [&group](const at::Tensor& input, const BatchNormParts& parts) {
    if (!parts.training || group.size() == 1) return LocalBatchNorm(input, parts);
    parts.num_batches_tracked.add_(1);
    return SyncBatchNormTraining(input,
                                 {parts.weight, parts.bias, parts.running_mean, parts.running_var},
                                 parts.momentum, parts.epsilon, group);
  };
}

// The first `count` of the rows of `tensor`, or itself when it has no more: each operation that is
// left out is one less on the way back, too.
at::Tensor First(const at::Tensor& tensor, std::int64_t count) {
  return count == tensor.size(0) ? tensor : tensor.narrow(0, 0, count);
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
                 parts.options.parallel.ddp);
  }

  // The last batch of an epoch may be smaller, and ranks may have filled their part of it up with
  // samples that others have too. Those pass through the model and count for nothing: a rank's loss
  // is the sum over its own samples, divided by their mean number over ranks. So the mean of the
  // ranks' gradients, which is what DDP computes, is the gradient of the mean loss over the whole
  // batch. Without this the loss curve would depend on the number of ranks.
  double ForwardBackward(const LoadedBatch& batch) override {
    const auto samples = static_cast<std::int64_t>(batch.plan.indices.size());
    const std::int64_t chunks = std::min(parts_.options.accumulate, samples);
    const double divisor = batch.plan.mean_own(parts_.group.size()) *
                           static_cast<double>(PredictionsPerSample(batch.data));
    double own_loss = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t begin = samples * chunk / chunks;
      const std::int64_t end = samples * (chunk + 1) / chunks;
      const Batch part = {batch.data.inputs.narrow(0, begin, end - begin),
                          batch.data.targets.narrow(0, begin, end - begin)};
      const std::int64_t own = std::clamp<std::int64_t>(batch.plan.own - begin, 0, end - begin);
      if (ddp_ && chunk + 1 < chunks) {
        const auto no_sync = ddp_->NoSync();
        own_loss += ForwardBackwardPart(part, own, divisor);
      } else {
        own_loss += ForwardBackwardPart(part, own, divisor);
      }
    }
    return own_loss;
  }

  // Each rank's batch normalization has learned from its own part of the last batch.
  void Finish() override {
    if (ddp_) ddp_->BroadcastBuffers();
  }

  Traffic traffic() const override { return ddp_ ? ddp_->traffic() : Traffic(); }
  std::optional<DdpTimings> timings() const override {
    return ddp_ ? std::optional(ddp_->timings()) : std::nullopt;
  }

 private:
  double ForwardBackwardPart(const Batch& part, std::int64_t own, double divisor) {
    parts_.phases.Enter(Phase::kForward);
    const at::Device& device = parts_.group.device();
    const Batch moved = MovedTo(part, device, parts_.options.dtype);
    at::Tensor loss;
    {
      const Bf16Autocast autocast(parts_.options.bf16, device.is_cuda());
      const auto forward = [&] { return parts_.model.Forward(moved.inputs); };
      const at::Tensor scores =
          ddp_ ? ddp_->Forward(std::function<at::Tensor()>(forward)) : forward();
      loss = CrossEntropySum(First(scores, own), First(moved.targets, own));
    }
    parts_.phases.Enter(Phase::kBackward);
    loss.div(divisor).backward();
    return loss.item<double>();
  }

  const StrategyParts parts_;
  std::optional<DistributedDataParallel> ddp_;
};

}  // namespace

std::unique_ptr<Strategy> MakeDdpStrategy(const StrategyParts& parts) {
  return std::make_unique<DdpStrategy>(parts);
}

}  // namespace muster::trainer
