// Moves parameters along their gradients.
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

// Updates parameters from their gradients, in place and without recording it for autograd. Holds
// the parameters' tensors: make it after Model::MoveTo. One owner, one thread; the one-pass kernels
// spread over LibTorch's threads by themselves.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One step with learning rate `lr` from the gradients that stand in the parameters' .grad(). A
  // parameter without one is left alone, as Python does. Gradients are not changed and not cleared.
  virtual void Step(double lr) = 0;

  // Parameters in the order in which Python's state_dict() numbers them: group by group.
  virtual std::vector<std::string> Order() const = 0;

  // What there is to remember. `lr` goes into the groups as Python keeps it there. The tensors are
  // the optimizer's own, not copies: to be written before the next step.
  virtual OptimizerState State(double lr) const = 0;

  // Takes over what `state` remembers, of the same kind of optimizer over the same parameters; its
  // tensors are copied, to the parameters' device, type and layout. Options in its groups are not
  // taken over: the user's command line decides those. A parameter not in it starts anew.
  // kInvalidArgument, one sentence, and nothing changed when it has a parameter that is not here, a
  // tensor of another shape, or lacks one.
  virtual absl::Status Load(const OptimizerState& state) = 0;
};

// Makes the optimizer of `parameters`, in Python's order (Model::Parameters). kInvalidArgument and
// one sentence when the options contradict each other.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<NamedTensor> parameters);

}  // namespace muster::trainer
