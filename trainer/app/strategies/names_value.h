// Names of tensors as an entry of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/value.h"

namespace muster::trainer {

// A list of strings.
Value NamesValue(const std::vector<std::string>& names);

// The inverse. kInvalidArgument and one sentence when `value` is no such list.
absl::StatusOr<std::vector<std::string>> ReadNames(const Value& value);

}  // namespace muster::trainer
