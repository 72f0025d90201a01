// What DDP is compared with: averaging of parameters, and replicas in threads of one process.
#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/app/strategies/chosen_model.h"
#include "trainer/app/strategies/micro_batch.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/models/autocast.h"
#include "trainer/parallel/data_parallel.h"
#include "trainer/parallel/parameter_averaging.h"

namespace muster::trainer {
namespace {

class AveragingStrategy : public Strategy {
 public:
  explicit AveragingStrategy(const StrategyParts& parts)
      : parts_(parts),
        averaging_(parts.model.Parameters(), parts.model.Buffers(), parts.group,
                   parts.options.parallel.average_every) {}

  double ForwardBackward(const LoadedBatch& batch, std::int64_t step) override {
    // A rank without samples of its own has nothing to learn from this step.
    if (batch.plan.own == 0) return 0;
    const auto predictions = static_cast<double>(batch.plan.own * PredictionsPerSample(batch.data));
    double loss = 0;
    for (const MicroBatch& part : SplitUp(batch, parts_.options.accumulate)) {
      loss += PassThrough(parts_, part, predictions, [&](const at::Tensor& inputs) {
        return parts_.model.ForwardAt(PlaceOf(parts_, step, part), inputs);
      });
    }
    return loss;
  }

  void AfterStep() override { averaging_.AfterStep(); }
  void Finish() override { averaging_.Finish(); }
  Traffic traffic() const override { return averaging_.traffic(); }

 private:
  const StrategyParts parts_;
  ParameterAveraging averaging_;
};

class ThreadsStrategy : public Strategy {
 public:
  explicit ThreadsStrategy(const StrategyParts& parts)
      : parts_(parts), others_(MakeOthers(parts)), data_parallel_(Replicas()) {}

  // The threads draw random numbers from one generator, in an order of their own.
  double ForwardBackward(const LoadedBatch& batch, std::int64_t /*step*/) override {
    // Forward and backward cannot be told apart: each thread is where it is.
    parts_.phases.Enter(Phase::kBackward);
    const Batch moved = MovedTo(batch.data, at::kCPU, parts_.options.dtype);
    const auto predictions = static_cast<double>(batch.plan.own * PredictionsPerSample(batch.data));
    const double mean = data_parallel_.ForwardBackward(
        batch.plan.own, [&](int replica, std::int64_t begin, std::int64_t end) {
          Model& model =
              replica == 0 ? parts_.model : *others_[static_cast<std::size_t>(replica) - 1];
          const Bf16Autocast autocast(parts_.options.bf16, /*cuda=*/false);
          const at::Tensor scores = model.Forward(moved.inputs.narrow(0, begin, end - begin));
          return parts_.options.model.objective
              .loss(scores, moved.targets.narrow(0, begin, end - begin))
              .div(predictions);
        });
    return mean * predictions;
  }

  Traffic traffic() const override { return data_parallel_.traffic(); }

 private:
  static std::vector<std::unique_ptr<Model>> MakeOthers(const StrategyParts& parts) {
    std::vector<std::unique_ptr<Model>> models;
    for (int i = 1; i < parts.options.parallel.replicas; ++i) {
      // The same options made the first one.
      models.push_back(MakeChosenModel(parts.options, at::kCPU).value());
    }
    return models;
  }

  std::vector<DataParallel::Replica> Replicas() const {
    std::vector<DataParallel::Replica> replicas;
    replicas.push_back({parts_.model.Parameters(), parts_.model.Buffers()});
    for (const auto& model : others_) replicas.push_back({model->Parameters(), model->Buffers()});
    return replicas;
  }

  const StrategyParts parts_;
  const std::vector<std::unique_ptr<Model>> others_;
  DataParallel data_parallel_;
};

}  // namespace

std::unique_ptr<Strategy> MakeAveragingStrategy(const StrategyParts& parts) {
  return std::make_unique<AveragingStrategy>(parts);
}

std::unique_ptr<Strategy> MakeThreadsStrategy(const StrategyParts& parts) {
  if (!parts.group.device().is_cpu()) {
    throw std::invalid_argument("--parallel threads runs on the CPU; add --comm gloo");
  }
  return std::make_unique<ThreadsStrategy>(parts);
}

}  // namespace muster::trainer
