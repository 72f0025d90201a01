// What an optimizer remembers, in the layout of Python's optimizer.state_dict() but by name.
//
// Python numbers the parameters through all groups, in order, and its state_dict is
//   {'state': {0: {'momentum_buffer': tensor}, 1: ...},
//    'param_groups': [{'lr': 0.02, ..., 'params': [0, 1, ...]}, ...]}
// So: number the names in `groups` from 0 in the order they stand; a ParameterState becomes the
// dict under its parameter's number; a GroupState's options, in order, and then 'params' become a
// dict of param_groups. torch.optim.SGD and AdamW of 1.13 and 2.x load the result.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/named_tensor.h"

namespace muster::trainer {

// None, a truth, a number, or two numbers (Adam's betas, a tuple).
using OptionValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::pair<double, double>>;

struct GroupState {
  std::vector<std::pair<std::string, OptionValue>> options;  // "lr" and so on, in Python's order
  std::vector<std::string> parameters;                       // names
};

struct ParameterState {
  std::string parameter;  // its name
  // "momentum_buffer"; or "step" (a float32 scalar on the CPU, as Python keeps it), "exp_avg",
  // "exp_avg_sq".
  std::vector<NamedTensor> tensors;
};

struct OptimizerState {
  std::vector<GroupState> groups;
  std::vector<ParameterState> parameters;  // only those that have taken a step
};

}  // namespace muster::trainer
