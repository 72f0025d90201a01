// Replicas of the model in threads of one process: what DDP is compared with.
#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "trainer/app/strategies/chosen_model.h"
#include "trainer/app/strategies/replica_strategy.h"
#include "trainer/models/autocast.h"
#include "trainer/parallel/data_parallel.h"

namespace muster::trainer {
namespace {

using Models = std::vector<std::unique_ptr<Model>>;

class ThreadsStrategy : public ReplicaStrategy {
 public:
  ThreadsStrategy(StrategyParts parts, Models others)
      : ReplicaStrategy(std::move(parts)), others_(std::move(others)), data_parallel_(Replicas()) {}

  Traffic traffic() const override { return data_parallel_.traffic(); }
  // Of all replicas together; the first has the optimizer, and at the end of a backward pass all
  // gradients.
  StateMemory state_memory() const override {
    StateMemory memory = ReplicaStrategy::state_memory();
    const std::int64_t copies = static_cast<std::int64_t>(others_.size()) * parameter_bytes();
    memory.counted += copies;  // which were there before the meter
    memory.formula += copies;
    return memory;
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
    const double mean = data_parallel_.ForwardBackward(
        batch.plan.own, [&](int replica, std::int64_t begin, std::int64_t end) {
          Model& mine = replica == 0 ? model() : *others_[static_cast<std::size_t>(replica) - 1];
          const Autocast autocast(options().autocast_type(), /*cuda=*/false);
          const at::Tensor scores = mine.Forward(moved.inputs.narrow(0, begin, end - begin));
          return options()
              .model.objective.loss(scores, moved.targets.narrow(0, begin, end - begin))
              .div(predictions);
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
