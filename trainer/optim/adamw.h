// Adam with decoupled weight decay: torch.optim.AdamW.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/optim/grouped.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
