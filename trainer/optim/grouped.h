// Shared by SGD and AdamW: parameter groups, and the tensors kept for each parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/optim/optimizer.h"

namespace muster::trainer {

// Visits the parameters in Step(), and converts the kept tensors to a state and back. Derived
// classes define the update of one parameter.
class GroupedOptimizer : public Optimizer {
 public:
  void Step(double lr) final;
  std::vector<std::string> Order() const final;
  OptimizerState State(double lr) const final;
  absl::Status Load(const OptimizerState& state) final;

 protected:
  // A parameter and its state.
  struct Entry {
    std::string name;
    at::Tensor parameter;
    double weight_decay = 0;
    double lr_scale = 1;
    // Steps taken. For SGD this only tells whether there were any: Python does not save the number,
    // so it is 1 after Load().
    std::int64_t steps = 0;
    // One for each kept name. Undefined before the first step: Update() creates them.
    std::vector<at::Tensor> remembered;
  };

  // Parameters with the same update, and their state: remembered[i] are all tensors of the name i,
  // undefined before their first step.
  struct Alike {
    double weight_decay = 0;
    std::int64_t steps = 0;  // 0 for SGD
    bool first = false;      // whether there is no state yet
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> gradients;
    std::vector<std::vector<at::Tensor>> remembered;
  };

  // `remembered` holds Python's names for the tensors in Entry::remembered.
  GroupedOptimizer(const OptimizerOptions& options, std::vector<NamedTensor> parameters,
                   std::vector<std::string> remembered);

  // Updates the parameter from its gradient, which is defined. entry.steps already includes this
  // step.
  virtual void Update(Entry& entry, double lr) = 0;
  // Updates many parameters from their gradients with the same operations. Puts state that it
  // creates into `alike.remembered`.
  virtual void UpdateAlike(Alike& alike, double lr) = 0;
  // Whether the state includes "step".
  virtual bool counts_steps() const = 0;
  // A group's options in Python's order, "lr" first, without "params".
  virtual std::vector<std::pair<std::string, OptionValue>> Describe(double lr,
                                                                    double weight_decay) const = 0;

  // Whether the one-pass kernels can update this parameter: it is dense, on the CPU and float32 or
  // float64, and the kept tensors have its type and layout. A gradient of another type or layout is
  // replaced in `*gradient` by a copy with the parameter's; a sparse one cannot be used.
  bool OnePass(const Entry& entry, at::Tensor* gradient) const;

  // Splits [0, count) into ranges and runs `body(begin, end)` for each on LibTorch's threads.
  static void InParallel(std::int64_t count,
                         const std::function<void(std::int64_t, std::int64_t)>& body);

  const OptimizerOptions options_;

 private:
  bool TakesForeach(const Entry& entry) const;
  void UpdateTogether(const std::vector<Entry*>& entries, double lr);
  // Fills `entry` from `state`.
  absl::Status Restore(const ParameterState& state, Entry* entry) const;

  const std::vector<std::string> remembered_;
  std::vector<Entry> entries_;             // group by group
  std::vector<std::size_t> group_begins_;  // indices into entries_
};

}  // namespace muster::trainer
