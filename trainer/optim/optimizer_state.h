// An optimizer's state, laid out as in Python's optimizer.state_dict() but keyed by name.
//
// Python numbers the parameters across all groups, in order, and its state_dict is
//   {'state': {0: {'momentum_buffer': tensor}, 1: ...},
//    'param_groups': [{'lr': 0.02, ..., 'params': [0, 1, ...]}, ...]}
// To convert: number the names in `groups` from 0, in order. A ParameterState becomes the dict
// under its parameter's number. A GroupState becomes a dict in param_groups: its options, in order,
// then 'params'. torch.optim.SGD and AdamW of 1.13 and 2.x load the result.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/named_tensor.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
