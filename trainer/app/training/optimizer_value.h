// An optimizer's state in the layout of Python's optimizer.state_dict().
#pragma once

#include "absl/status/statusor.h"

#include "trainer/io/value.h"
#include "trainer/optim/optimizer_state.h"

namespace muster::trainer {

// What optimizer_state.h describes: parameters become numbers, in the order of the groups. The
// tensors share their elements with `state`. One thing is added to what Python has: each group's
// "names", which Python's load_state_dict keeps and ignores.
Value OptimizerStateValue(const OptimizerState& state);

// And back. kInvalidArgument and one sentence when `value` is something else.
absl::StatusOr<OptimizerState> ReadOptimizerState(const Value& value);

}  // namespace muster::trainer
