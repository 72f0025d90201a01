// Each rank trains alone on its part of the data, and parameters are averaged now and then.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <optional>
#include <utility>

#include "trainer/app/strategies/replica_strategy.h"
#include "trainer/parallel/parameter_averaging.h"

namespace muster::trainer {
namespace {

class AveragingStrategy : public ReplicaStrategy {
 public:
  using ReplicaStrategy::ReplicaStrategy;

  void Settle() override { averaging_->Finish(); }
  Traffic traffic() const override { return averaging_->traffic(); }

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

}  // namespace muster::trainer
