// The interface of optimizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/named_tensor.h"
#include "trainer/optim/optimizer_options.h"
#include "trainer/optim/optimizer_state.h"

namespace muster::trainer {

// Updates parameters from their gradients, in place and unseen by autograd. Holds the parameters'
// tensors, so create it after Model::MoveTo. One owner, one thread; the one-pass kernels use
// LibTorch's threads internally.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Takes one step with learning rate `lr`, using the gradients in the parameters' .grad(). A
  // parameter without a gradient is left alone, as in Python. Does not change or clear the
  // gradients.
  virtual void Step(double lr) = 0;

  // The names of the parameters in the order in which Python's state_dict() numbers them: group by
  // group.
  virtual std::vector<std::string> Order() const = 0;

  // The state to save. `lr` goes into the groups, where Python keeps it. The tensors are the
  // optimizer's own, not copies, so use them before the next step.
  virtual OptimizerState State(double lr) const = 0;

  // Restores `state`, which the same kind of optimizer saved for the same parameters. Copies its
  // tensors to each parameter's device, type and layout. Ignores the options in its groups, because
  // the command line sets those. A parameter that is not in `state` starts afresh. On error nothing
  // changes: kInvalidArgument and one sentence when `state` has an unknown parameter, a tensor of
  // another shape or a bad step number, or when it lacks a tensor of a parameter.
  virtual absl::Status Load(const OptimizerState& state) = 0;
};

// Creates the optimizer for `parameters`, given in Python's order (Model::Parameters). Frozen ones
// are numbered, as in Python, and never have a gradient. kInvalidArgument and one sentence when the
// options contradict each other, or when no parameter requires a gradient.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<NamedTensor> parameters);

// The same for the part of the parameters, perhaps none, that one of several ranks updates. With
// options that MakeOptimizer() has accepted for the whole.
std::unique_ptr<Optimizer> MakePartOptimizer(const OptimizerOptions& options,
                                             std::vector<NamedTensor> parameters);

}  // namespace muster::trainer
