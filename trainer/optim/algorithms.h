// Stochastic gradient descent with momentum: torch.optim.SGD.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/optim/grouped.h"

namespace muster::trainer {

class Sgd : public GroupedOptimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<NamedTensor> parameters);

 private:
  void Update(Entry& entry, double lr) override;
  void UpdateAlike(Alike& alike, double lr) override;
  void UpdateAsPython(Entry& entry, at::Tensor direction, bool first, double lr);
  bool counts_steps() const override { return false; }
  std::vector<std::pair<std::string, OptionValue>> Describe(double lr,
                                                            double weight_decay) const override;
};

// Adam with decoupled weight decay: torch.optim.AdamW.

class AdamW : public GroupedOptimizer {
 public:
  AdamW(const OptimizerOptions& options, std::vector<NamedTensor> parameters)
      : GroupedOptimizer(options, std::move(parameters), {"exp_avg", "exp_avg_sq"}) {}

 private:
  void Update(Entry& entry, double lr) override;
  void UpdateAlike(Alike& alike, double lr) override;
  void UpdateAsPython(Entry& entry, const at::Tensor& gradient, double lr);
  bool counts_steps() const override { return true; }
  std::vector<std::pair<std::string, OptionValue>> Describe(double lr,
                                                            double weight_decay) const override;
};

// An optimizer with a recipe's update.

// Calls options.own.rule, which must be set.
class OwnOptimizer : public GroupedOptimizer {
 public:
  OwnOptimizer(const OptimizerOptions& options, std::vector<NamedTensor> parameters)
      : GroupedOptimizer(options, std::move(parameters), options.own.rule->kept) {}

 private:
  void Update(Entry& entry, double lr) override;
  void UpdateAlike(Alike& alike, double lr) override;
  bool counts_steps() const override { return true; }
  std::vector<std::pair<std::string, OptionValue>> Describe(double lr,
                                                            double weight_decay) const override;
};

}  // namespace muster::trainer
