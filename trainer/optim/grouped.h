// What SGD and AdamW have in common: groups of parameters, and tensors remembered for each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/optim/optimizer.h"

namespace muster::trainer {

// Walks the parameters for Step, and turns what is remembered into a state and back. Derived
// classes say how one parameter is updated.
class GroupedOptimizer : public Optimizer {
 public:
  void Step(double lr) final;
  std::vector<std::string> Order() const final;
  OptimizerState State(double lr) const final;
  absl::Status Load(const OptimizerState& state) final;

 protected:
  // A parameter and what is remembered for it.
  struct Entry {
    std::string name;
    at::Tensor parameter;
    double weight_decay = 0;
    // Steps taken. For SGD only whether there were any: Python does not keep their number, so after
    // Load() it is 1.
    std::int64_t steps = 0;
    // One for each remembered name; undefined before the first step, as Update makes them.
    std::vector<at::Tensor> remembered;
  };

  // Python's names of the tensors in Entry::remembered.
  GroupedOptimizer(const OptimizerOptions& options, std::vector<NamedTensor> parameters,
                   std::vector<std::string> remembered);

  // Updates the parameter from its gradient, which is defined. entry.steps already counts this
  // step.
  virtual void Update(Entry& entry, double lr) = 0;
  // Whether "step" is part of the state.
  virtual bool counts_steps() const = 0;
  // The options of a group in Python's order, "lr" first, without "params".
  virtual std::vector<std::pair<std::string, OptionValue>> Describe(double lr,
                                                                    double weight_decay) const = 0;

  // Whether the one-pass kernels can take this parameter: on the CPU, float32 or float64, and, if
  // `gradient` and what is remembered are, too, the same bytes in the same order. Makes `gradient`
  // a copy in the parameter's layout if that is what is missing.
  bool OnePass(const Entry& entry, at::Tensor* gradient) const;

  // Runs `body(begin, end)` over parts of [0, count) on LibTorch's threads.
  static void InParallel(std::int64_t count,
                         const std::function<void(std::int64_t, std::int64_t)>& body);

  const OptimizerOptions options_;

 private:
  // An entry with what `state` has for it.
  absl::Status Restore(const ParameterState& state, Entry* entry) const;

  const std::vector<std::string> remembered_;
  std::vector<Entry> entries_;  // group by group
  std::size_t decayed_ = 0;     // entries in the first group; all when there is one group
};

}  // namespace muster::trainer
