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

}  // namespace muster::trainer
