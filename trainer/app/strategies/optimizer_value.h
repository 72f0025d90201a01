// An optimizer's state in the layout of Python's optimizer.state_dict().
#pragma once

#include "absl/status/statusor.h"

#include "trainer/io/value.h"
#include "trainer/optim/optimizer_state.h"

namespace muster::trainer {

// Converts `state` as optimizer_state.h describes: parameters become numbers, in the order of the
// groups. The tensors share their elements with `state`. Each group also gets its parameters'
// "names", which Python's load_state_dict keeps and ignores.
Value OptimizerStateValue(const OptimizerState& state);

// The inverse. kInvalidArgument and one sentence when `value` is not an optimizer's state.
absl::StatusOr<OptimizerState> ReadOptimizerState(const Value& value);

}  // namespace muster::trainer
