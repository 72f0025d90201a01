// The interface of optimizers, and the settings by which one is chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/state_dict.h"
#include "trainer/models/recipe.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// The choice of an optimizer and its settings.

enum class OptimizerKind { kSgd, kAdamW };

// Implementations of the same update.
enum class OptimizerPath {
  // The operations of torch.optim in the same order, so the result matches Python bit for bit.
  kReference,
  // The same operations, each on all parameters at once, as with foreach=True in Python: on a GPU
  // about ten launches per step instead of ten per parameter.
  kForeach,
  // The fastest: on the CPU, for float32 and float64, one pass over each parameter instead of one
  // per operation, which is up to twice as fast and rounds differently; on a GPU kForeach. Others
  // use the reference path.
  kOnePass,
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  OptimizerPath path = OptimizerPath::kOnePass;

  // SGD adds weight_decay * parameter to the gradient; AdamW shrinks the parameter separately.
  // Python's defaults are 0 for SGD and 0.01 for AdamW.
  double weight_decay = 0;
  // Whether parameters with fewer than two dimensions (biases and the weights of normalization
  // layers) decay too. If not, they form a second group without weight decay.
  bool decay_vectors = true;

  // For SGD.
  double momentum = 0.9;
  bool nesterov = false;  // requires momentum

  // Of AdamW.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // For AdamW's reference path, because versions of torch round differently: whether the mean of
  // the gradients is computed with lerp_ instead of mul_ and add_, and whether the square root of
  // the second bias correction is computed as a power of 0.5 instead of with sqrt. For parity with
  // Python, take both from trainer/compat/torch_version.h.
  bool interpolate_mean = false;
  bool root_is_power = false;

  // A recipe's own rules: its update rule replaces `kind`.
  OwnUpdates own = {};
};

// The default learning rate. For AdamW, whose steps do not shrink with the gradients, it is
// Python's.
inline double UsualLearningRate(const OptimizerOptions& options) {
  if (options.own.rule) return options.own.rule->lr;
  return options.kind == OptimizerKind::kAdamW ? 0.001 : 0.02;
}

// The learning rate of each step.

enum class ScheduleKind {
  kConstant,
  kStep,    // torch.optim.lr_scheduler.StepLR: multiplied by `gamma` every `step_size` steps
  kCosine,  // CosineAnnealingLR: half a cosine from learning_rate to `minimum` at the last step
};

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0.02;  // reached at the end of the warm-up

  // Length of the warm-up in steps; 0: none. LinearLR(start_factor=warmup_start,
  // total_iters=warmup_steps): rises linearly from learning_rate * warmup_start to learning_rate.
  std::int64_t warmup_steps = 0;
  double warmup_start = 0.01;  // in (0, 1]

  // For kStep, counted from the end of the warm-up.
  std::int64_t step_size = 1;
  double gamma = 0.1;

  // For kCosine: the number of steps including the warm-up (T_max is total_steps - warmup_steps).
  // After that the rate stays at `minimum`, whereas CosineAnnealingLR would rise again.
  std::int64_t total_steps = 1;
  double minimum = 0;

  // A recipe's own schedule, instead of `kind`: the factor for the learning rate in step `step` of
  // `total_steps` (OwnUpdates::schedule). Null: none.
  std::function<double(std::int64_t step, std::int64_t steps)> own = nullptr;
};

// The learning rate of step `step`, counted from 0: what
//   SequentialLR([LinearLR(...), StepLR or CosineAnnealingLR], milestones=[warmup_steps])
// gives with scheduler.step() after each step. Depends only on its arguments, so resuming needs no
// state but the step.
double LearningRateAt(const ScheduleOptions& options, std::int64_t step);

// kInvalidArgument and one sentence when an option is out of range.
absl::Status CheckSchedule(const ScheduleOptions& options);

// The interface of optimizers.

// An optimizer's state, laid out as in Python's optimizer.state_dict() but keyed by name.
//
// Python numbers the parameters across all groups, in order, and its state_dict is
//   {'state': {0: {'momentum_buffer': tensor}, 1: ...},
//    'param_groups': [{'lr': 0.02, ..., 'params': [0, 1, ...]}, ...]}
// To convert: number the names in `groups` from 0, in order. A ParameterState becomes the dict
// under its parameter's number. A GroupState becomes a dict in param_groups: its options, in order,
// then 'params'. torch.optim.SGD and AdamW of 1.13 and 2.x load the result.

// None, a bool, a number, or a tuple of two numbers (Adam's betas).
using OptionValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::pair<double, double>>;

struct GroupState {
  std::vector<std::pair<std::string, OptionValue>> options;  // "lr" etc., in Python's order
  std::vector<std::string> parameters;                       // names
};

struct ParameterState {
  std::string parameter;  // its name
  // SGD: "momentum_buffer". AdamW: "step" (a float32 scalar on the CPU, as in Python), "exp_avg"
  // and "exp_avg_sq".
  std::vector<NamedTensor> tensors;
};

struct OptimizerState {
  std::vector<GroupState> groups;
  std::vector<ParameterState>
      parameters;  // those that have taken a step; none for SGD without momentum
};

// Updates parameters from their gradients, in place and unseen by autograd. Holds the parameters'
// tensors, so create it after Model::MoveTo. One owner, one thread; the one-pass kernels use
// LibTorch's threads internally.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Takes one step with learning rate `lr`, using the gradients in the parameters' .grad(). A
  // parameter without a gradient is not updated, as in Python. Does not change or clear the
  // gradients.
  virtual void Step(double lr) = 0;

  // The names of the parameters in the order in which Python's state_dict() numbers them: group by
  // group.
  virtual std::vector<std::string> Order() const = 0;

  // The state to save. `lr` goes into the groups, where Python keeps it. The tensors are the
  // optimizer's own, not copies, so use them before the next step.
  virtual OptimizerState State(double lr) const = 0;

  // Restores `state`, saved by the same kind of optimizer for the same parameters. Copies its
  // tensors to each parameter's device, type and layout. Ignores the options in its groups, because
  // the command line sets those. A parameter that is not in `state` starts without state. On error
  // nothing changes: kInvalidArgument and one sentence if `state` has an unknown parameter, a
  // tensor of another shape or a bad step number, or lacks a tensor of a parameter.
  virtual absl::Status Load(const OptimizerState& state) = 0;
};

// Creates the optimizer for `parameters`, given in Python's order (Model::Parameters). Frozen ones
// are numbered, as in Python, and never have a gradient. kInvalidArgument and one sentence when the
// options contradict each other, or when no parameter requires a gradient.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<NamedTensor> parameters);

// The same for the part of the parameters, possibly none, that one of several ranks updates.
// MakeOptimizer() must have accepted the options for all parameters.
std::unique_ptr<Optimizer> MakePartOptimizer(const OptimizerOptions& options,
                                             std::vector<NamedTensor> parameters);

// An optimizer's state in the layout of Python's optimizer.state_dict().

// Converts `state` as described at OptimizerState: parameters become numbers, in the order of the
// groups. The tensors share their elements with `state`. Each group also gets its parameters'
// "names", which Python's load_state_dict keeps and ignores.
Value OptimizerStateValue(const OptimizerState& state);

// The inverse. kInvalidArgument and one sentence when `value` is not an optimizer's state.
absl::StatusOr<OptimizerState> ReadOptimizerState(const Value& value);

// Names of tensors as an entry of a checkpoint.

// A list of strings.
Value NamesValue(const std::vector<std::string>& names);

// The inverse. kInvalidArgument and one sentence if `value` is not such a list.
absl::StatusOr<std::vector<std::string>> ReadNames(const Value& value);

// The exponential moving average of a model's parameters.

// An average of each parameter over the last steps, roughly 1 / (1 - decay) of them. It often tests
// better than the parameters themselves, which fluctuate from step to step. One thread.
class Ema {
 public:
  // Keeps the tensors of `parameters`; the averages start equal to them. `decay` is in (0, 1).
  Ema(const std::vector<NamedTensor>& parameters, double decay);

  // Sets the averages to the current parameters.
  void Restart();
  // Call this after each step of the optimizer: average = decay * average + (1 - decay) *
  // parameter.
  void Update();

  // Swaps the parameters with their averages, in place. Call it before the averages are evaluated
  // or saved as the model, and again afterwards.
  void Swap();

  // The averages, named as their parameters. They share memory with this object.
  const std::vector<NamedTensor>& averages() const { return averages_; }

 private:
  const std::vector<NamedTensor> parameters_;
  const double decay_;
  std::vector<NamedTensor> averages_;
};

// Swaps the parameters with their averages during its lifetime. Does nothing if `ema` is null.
class EmaInPlace {
 public:
  // Calls `exchanged`, if set, after each swap; it must not throw.
  explicit EmaInPlace(Ema* ema, std::function<void()> exchanged = nullptr)
      : ema_(ema), exchanged_(std::move(exchanged)) {
    Exchange();
  }
  ~EmaInPlace() { Exchange(); }
  EmaInPlace(const EmaInPlace&) = delete;
  EmaInPlace& operator=(const EmaInPlace&) = delete;

 private:
  void Exchange() {
    if (ema_ == nullptr) return;
    ema_->Swap();
    if (exchanged_) exchanged_();
  }

  Ema* const ema_;
  const std::function<void()> exchanged_;
};

}  // namespace muster::trainer
