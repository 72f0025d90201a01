// Strategies that keep the whole model on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/app/strategies/strategy.h"
#include "trainer/optim/gradients.h"
#include "trainer/optim/optimizer.h"

namespace muster::trainer {

// What a strategy is made of. The references must outlive it.
struct StrategyParts {
  Options options;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  Group& group;
  PhaseTracker& phases;
};

// All that is alike when each rank has the whole model: a strategy says only how gradients come
// about, and what keeps the ranks in sync.
class ReplicaStrategy : public Strategy {
 public:
  explicit ReplicaStrategy(StrategyParts parts);

  absl::Status Load(const Value& saved) override;
  void Begin() override;
  DataPlace place() const override { return {group().rank(), group().size()}; }
  StepResult Step(const LoadedBatch& batch, std::int64_t step, double lr) override;
  BatchSums Evaluate(const LoadedBatch& batch) override;
  void Settle() override {}
  EmaInPlace Averaged() override { return EmaInPlace(ema_.get()); }
  std::vector<NamedTensor> StateDict() const override { return model().StateDict(); }
  std::vector<NamedTensor> Whole() override;
  // Without traffic.
  StrategyReport Report() const override;
  absl::StatusOr<Dict> Save(double lr, bool everywhere) override;

 protected:
  // Gives all ranks rank 0's parameters and buffers. `gradient_order` is that of the run that this
  // one resumes, or empty.
  virtual void Connect(const std::vector<std::string>& gradient_order) = 0;
  // Adds up the gradients of `batch` in the parameters, which have none before. `step` is the
  // number of steps before. Returns the sum of the losses of this rank's own samples, of float64.
  virtual at::Tensor ComputeGradients(const LoadedBatch& batch, std::int64_t step) = 0;
  virtual void AfterUpdate() {}
  virtual std::vector<std::string> GradientOrder() { return {}; }

  // Runs `part` of step `step` forward and backward, with its loss divided by `divisor`. `forward`
  // is given the model's forward pass, and is to run it. Returns the sum of the losses of the
  // part's own samples.
  using Forward = std::function<at::Tensor()>;
  at::Tensor PassThrough(const MicroBatch& part, std::int64_t step, double divisor,
                         const std::function<at::Tensor(const Forward&)>& forward);

  const Options& options() const { return parts_.options; }
  Model& model() const { return *parts_.model; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  Group& group() const { return parts_.group; }
  PhaseTracker& phases() const { return parts_.phases; }

 private:
  void SetTraining(bool training);
  bool UnscaleGradients();
  void KeepBuffers();
  void PutBackBuffers();
  void ShareBuffers();

  const StrategyParts parts_;
  const std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  StateMeter state_;
  std::unique_ptr<Ema> ema_;                 // null without --ema
  std::optional<LossScaler> scaler_;         // if losses are scaled
  std::vector<at::Tensor> kept_buffers_;     // with --on-nonfinite skip: as before the step
  std::vector<std::string> gradient_order_;  // of the run that this one resumes
  bool loaded_ = false;
  bool training_ = true;  // the mode that the model is in
};

// For MakeStrategy() only.
std::unique_ptr<Strategy> MakeDdpStrategy(StrategyParts parts);
std::unique_ptr<Strategy> MakeAveragingStrategy(StrategyParts parts);
absl::StatusOr<std::unique_ptr<Strategy>> MakeThreadsStrategy(StrategyParts parts);

}  // namespace muster::trainer
